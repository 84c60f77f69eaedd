import { createServer } from 'node:http'
import { createFluxGate } from 'fluxgate-js'
import { GraphQLError, visit } from 'graphql'
import { createSchema, createYoga } from 'graphql-yoga'

// The fields of the schema are paths of the rules.
const gate = await createFluxGate({
  rules: {
    id: 'graphql',
    rules: [
      { id: 'operations', path: '/', bands: [{ label: 'minute', capacity: 100, window: '1m' }] },
      { id: 'login', path: '/Mutation/login', bands: [{ label: 'tries', capacity: 3, window: '1m' }] },
    ],
  },
})

async function limit(path, { req }, permits = 1) {
  const { allowed, retryAfterMs } = await gate.check({ clientIp: req.socket.remoteAddress, path }, { permits })
  if (!allowed) throw new GraphQLError('Too many requests.', { extensions: { code: 'RATE_LIMITED', retryAfterMs } })
}

/** An operation costs as many permits as it has fields, so that a large query is no way around the limit. */
const limitOperations = {
  async onExecute({ args, setResultAndStopExecution }) {
    let fields = 0
    visit(args.document, { Field: () => void fields++ })
    await limit('/', args.contextValue, fields).catch((error) => setResultAndStopExecution({ errors: [error] }))
  },
}

/** Counts every call of a resolver. A mutation may call it several times under different aliases. */
const limited = (resolve) => async (parent, args, context, info) => {
  await limit(`/${info.parentType.name}/${info.fieldName}`, context)
  return resolve(parent, args, context, info)
}

const schema = createSchema({
  typeDefs: `
    type Query { hello: String! }
    type Mutation { login(password: String!): String! }
  `,
  resolvers: {
    Query: { hello: () => 'Hello.' },
    Mutation: { login: limited(() => 'Welcome.') },
  },
})

const server = createServer(createYoga({ schema, plugins: [limitOperations], logging: false }))
server.listen(Number(process.env.PORT ?? 3000), '127.0.0.1', () => {
  console.log(`http://127.0.0.1:${server.address().port}`)
})

process.once('SIGTERM', () => server.close(() => gate.close()))
