import { Option } from 'commander'
import { type ServerClient, serverClient } from '../server-client.js'

const defaultServer = 'http://127.0.0.1:8090'

/** The running server that a command works on. */
export const serverOption = (): Option =>
  new Option('--server <url>', `FluxGate server; token from FLUXGATE_ADMIN_TOKEN (default: ${defaultServer})`)

export const adminClient = ({ server = defaultServer }: { readonly server?: string }): ServerClient =>
  serverClient(server, ['FLUXGATE_ADMIN_TOKEN'])
