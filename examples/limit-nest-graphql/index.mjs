import 'reflect-metadata'
import { ApolloDriver } from '@nestjs/apollo'
import { Module } from '@nestjs/common'
import { NestFactory } from '@nestjs/core'
import { GraphQLModule, Mutation, Query, Resolver } from '@nestjs/graphql'
import { RateLimit, RateLimitModule } from 'fluxgate-js/nest'

class Accounts {
  hello() {
    return 'Hello.'
  }

  login() {
    return 'Welcome.'
  }
}

class App {}

// JavaScript has no decorator syntax; the README shows the same resolver in TypeScript.
decorate(Accounts, [Resolver()])
decorate(Accounts, [Query('hello')], 'hello')
decorate(Accounts, [Mutation('login'), RateLimit({ id: 'login', capacity: 3, window: '1m' })], 'login')
decorate(App, [
  Module({
    imports: [
      RateLimitModule.forRoot({ id: 'per-address', capacity: 60, window: '1m' }),
      GraphQLModule.forRoot({
        driver: ApolloDriver,
        typeDefs: `
          type Query { hello: String! }
          type Mutation { login(password: String!): String! }
        `,
      }),
    ],
    providers: [Accounts],
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
