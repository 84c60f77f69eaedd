import 'reflect-metadata'
import { Controller, Get, HttpCode, Module, Post } from '@nestjs/common'
import { NestFactory } from '@nestjs/core'
import { RateLimit, RateLimitModule } from 'fluxgate-js/nest'

class Hello {
  hello() {
    return 'Hello.\n'
  }

  login() {
    return 'Welcome.\n'
  }
}

class App {}

// JavaScript has no decorator syntax; the README shows the same controller in TypeScript.
decorate(Hello, [Controller()])
decorate(Hello, [Get()], 'hello')
decorate(Hello, [Post('login'), HttpCode(200), RateLimit({ id: 'login', capacity: 3, window: '1m' })], 'login')
decorate(App, [
  Module({
    imports: [RateLimitModule.forRoot({ id: 'per-address', capacity: 60, window: '1m' })],
    controllers: [Hello],
  }),
])

const app = await NestFactory.create(App, { logger: ['error'] })
await app.listen(Number(process.env.PORT ?? 3000), '127.0.0.1')
console.log(await app.getUrl())

process.once('SIGTERM', () => app.close())

function decorate(target, decorators, method) {
  for (const decorator of decorators)
    if (method === undefined) decorator(target)
    else decorator(target.prototype, method, Object.getOwnPropertyDescriptor(target.prototype, method))
}
