/**
 * Real MongoDB servers for tests: `mongod` if it is installed, as a replica set of one so that change streams work;
 * otherwise FerretDB, which implements MongoDB's protocol and is built by `node scripts/bootstrap.mjs mongo` if Go is
 * installed.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { MongoClient } from 'mongodb'
import { mongoServer } from '../../scripts/bootstrap/mongo.mjs'
import { eventually } from '../fixtures/eventually.js'
import { freePort } from './free-port.js'
import { type GuardedProcess, launchGuarded } from './guarded-process.js'

export interface MongoServer {
  readonly uri: string
  /** Kills it with SIGKILL, as in a power failure. The files are kept for a restart. */
  kill(): Promise<void>
  /** Restarts it on the same port with the same files. */
  restart(): Promise<void>
  stop(): Promise<void>
}

interface Program {
  readonly command: (port: number, directory: string) => readonly string[]
  readonly uri: (port: number) => string
  /** Initiates the replica set, once, on a server that answers. */
  readonly prepare: (uri: string) => Promise<void>
}

const host = '127.0.0.1'

const mongodProgram = (binary: string): Program => ({
  command: (port, directory) => {
    const address = ['--bind_ip', host, '--port', String(port), '--dbpath', directory]
    return [binary, ...address, '--replSet', 'test', '--quiet', '--oplogSize', '50']
  },
  uri: (port) => `mongodb://${host}:${port}/?replicaSet=test`,
  prepare: async (uri) => {
    const [, port] = /:(\d+)\//.exec(uri) ?? []
    const client = new MongoClient(`mongodb://${host}:${port}/?directConnection=true`)
    try {
      await client
        .db('admin')
        .command({ replSetInitiate: { _id: 'test', members: [{ _id: 0, host: `${host}:${port}` }] } })
    } finally {
      await client.close()
    }
  },
})

const ferretProgram = (binary: string): Program => ({
  command: (port, directory) => [binary, `${host}:${port}`, directory],
  uri: (port) => `mongodb://${host}:${port}/`,
  prepare: async () => {},
})

/** The server that tests can use, if any. */
export const mongoKind = mongoServer()?.kind

/** A server that tests share: the one named by `FLUXGATE_TEST_MONGO_URI`, or a new one. */
export async function openMongo(): Promise<Pick<MongoServer, 'uri' | 'stop'>> {
  const found = mongoServer()
  return found?.kind === 'uri' ? { uri: found.where, stop: async () => {} } : startMongo()
}

/** A separate server that the test may kill. */
export async function startMongo(): Promise<MongoServer> {
  const found = mongoServer()
  if (found === undefined || found.kind === 'uri') throw new Error('neither mongod nor FerretDB is available')
  const program = found.kind === 'mongod' ? mongodProgram(found.where) : ferretProgram(found.where)
  const port = await freePort()
  const directory = mkdtempSync(join(tmpdir(), 'fluxgate-mongo-'))
  const uri = program.uri(port)
  const launch = async (): Promise<GuardedProcess> => {
    const launched = await launchGuarded(program.command(port, directory), directory)
    await answering(launched, `mongodb://${host}:${port}/?directConnection=true`)
    return launched
  }
  let server = await launch()
  await program.prepare(uri)
  await answering(server, uri)
  return {
    uri,
    kill: () => server.end('keep'),
    async restart() {
      await server.end('keep')
      server = await launch()
      await answering(server, uri)
    },
    async stop() {
      await server.end('remove')
      rmSync(directory, { recursive: true, force: true })
    },
  }
}

async function answering(server: GuardedProcess, uri: string): Promise<void> {
  const answer = await eventually(`a reply from the server at ${uri}`, async () => {
    if (!server.isRunning()) return 'ended'
    const client = new MongoClient(uri, { serverSelectionTimeoutMS: 500 })
    try {
      const { ok } = await client.db('admin').command({ ping: 1 })
      return ok === 1 && 'ready'
    } finally {
      await client.close()
    }
  })
  if (answer === 'ended') throw new Error(`the server at ${uri} exited:\n${server.output()}`)
}
