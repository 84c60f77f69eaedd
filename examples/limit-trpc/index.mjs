import { initTRPC, TRPCError } from '@trpc/server'
import { createHTTPServer } from '@trpc/server/adapters/standalone'
import { createFluxGate } from 'fluxgate-js'

// Procedures are paths of the rules: `posts.list` is `/posts/list`. Queries have the method QUERY, mutations MUTATION.
const gate = await createFluxGate({
  rules: {
    id: 'trpc',
    rules: [
      { id: 'per-address', bands: [{ label: 'minute', capacity: 60, window: '1m' }] },
      { id: 'login', path: '/login', method: 'MUTATION', bands: [{ label: 'tries', capacity: 3, window: '1m' }] },
    ],
  },
})

const t = initTRPC.context().create({
  // The client gets `data.retryAfterMs` with a rejection.
  errorFormatter: ({ shape, error }) => ({
    ...shape,
    data: { ...shape.data, retryAfterMs: error.cause?.decision?.retryAfterMs },
  }),
})

/** Each call of a batch counts, which a limit on HTTP requests cannot see. */
const limited = t.procedure.use(async ({ ctx, path, type, signal, next }) => {
  const decision = await gate.check(
    { clientIp: ctx.clientIp, path: `/${path.replaceAll('.', '/')}`, method: type.toUpperCase() },
    { signal },
  )
  if (decision.allowed) return next()
  const cause = Object.assign(new Error(decision.reason), { decision })
  throw new TRPCError({ code: 'TOO_MANY_REQUESTS', message: 'Too many requests.', cause })
})

const router = t.router({
  hello: limited.query(() => 'Hello.'),
  login: limited.mutation(() => 'Welcome.'),
})

const server = createHTTPServer({
  router,
  createContext: ({ req }) => ({ clientIp: req.socket.remoteAddress }),
})
server.listen(Number(process.env.PORT ?? 3000), '127.0.0.1', () => {
  console.log(`http://127.0.0.1:${server.address().port}`)
})

process.once('SIGTERM', () => server.close(() => gate.close()))
