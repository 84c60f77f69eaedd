import 'reflect-metadata'
import { Controller, Module } from '@nestjs/common'
import { APP_GUARD, NestFactory } from '@nestjs/core'
import { MessagePattern, RpcException, Transport } from '@nestjs/microservices'
import { createFluxGate } from 'fluxgate-js'

// Message patterns are paths of the rules.
const gate = await createFluxGate({
  rules: {
    id: 'reports',
    rules: [
      {
        id: 'per-tenant',
        path: '/reports.*',
        limitScope: 'CUSTOM',
        keyField: 'attributes.tenant',
        onMissingKey: 'DENY',
        bands: [{ label: 'minute', capacity: 3, window: '1m' }],
      },
    ],
  },
})

class RateLimitGuard {
  async canActivate(context) {
    const rpc = context.switchToRpc()
    const tenant = rpc.getData()?.tenant
    const { allowed, reason, retryAfterMs } = await gate.check({
      path: `/${rpc.getContext().getPattern()}`,
      attributes: typeof tenant === 'string' ? { tenant } : {},
    })
    if (allowed) return true
    throw new RpcException({ status: 429, reason, retryAfterMs })
  }
}

class Reports {
  create({ tenant }) {
    return `a report for ${tenant}`
  }
}

class App {}

// JavaScript has no decorator syntax; the README shows the same controller in TypeScript.
decorate(Reports, [Controller()])
decorate(Reports, [MessagePattern('reports.create')], 'create')
decorate(App, [Module({ providers: [{ provide: APP_GUARD, useClass: RateLimitGuard }], controllers: [Reports] })])

const options = { host: '127.0.0.1', port: Number(process.env.PORT ?? 3000) }
const app = await NestFactory.createMicroservice(App, { transport: Transport.TCP, options, logger: ['error'] })
await app.listen()
console.log(`tcp://127.0.0.1:${app.unwrap().address().port}`)

process.once('SIGTERM', () => app.close().then(() => gate.close()))

function decorate(target, decorators, method) {
  for (const decorator of decorators)
    if (method === undefined) decorator(target)
    else decorator(target.prototype, method, Object.getOwnPropertyDescriptor(target.prototype, method))
}
