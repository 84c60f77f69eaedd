// @ts-check
/** A Nest application in its own process, with limits in Redis. Arguments: the Redis URI and the key prefix. */
import 'reflect-metadata'
import { Controller, Get, Module } from '@nestjs/common'
import { NestFactory, RouterModule } from '@nestjs/core'
import { RateLimit, RateLimitModule } from '../../../dist/middleware/nest.js'

const [uri = '', prefix = ''] = process.argv.slice(2)

/** Applies decorators such as `@Get()` to a method. */
function decorate(
  /** @type {{ prototype: object }} */ owner,
  /** @type {string} */ name,
  /** @type {((...args: any[]) => void)[]} */ ...decorators
) {
  const method = Object.getOwnPropertyDescriptor(owner.prototype, name)
  for (const decorator of [Get(name), ...decorators]) decorator(owner.prototype, name, method)
}

/** Each has a limit for all its methods and one for a single method. */
function usersController(/** @type {string} */ path) {
  class Users {
    list() {
      return 'ok'
    }
    find() {
      return 'ok'
    }
    export() {
      return 'ok'
    }
  }
  for (const name of ['list', 'find']) decorate(Users, name)
  decorate(Users, 'export', RateLimit({ capacity: 3, window: '1h' }))
  Controller(path)(Users)
  RateLimit({ capacity: 4, window: '1h' })(Users)
  return Users
}

class Base {
  inherited() {
    return 'ok'
  }
}
decorate(Base, 'inherited')
RateLimit({ capacity: 2, window: '1h' })(Base)
class First extends Base {}
Controller('first')(First)
class Second extends Base {}
Controller('second')(Second)

// The same name and path under two prefixes.
class Internal {}
Module({ controllers: [usersController('users')] })(Internal)
class External {}
Module({ controllers: [usersController('users')] })(External)

class Root {}
Module({
  imports: [
    RateLimitModule.forRoot({ enabled: false, capacity: 1, window: '1h', store: { uri, prefix, timeoutMs: 20_000 } }),
    RouterModule.register([
      { path: 'internal', module: Internal },
      { path: 'external', module: External },
    ]),
    Internal,
    External,
  ],
  controllers: [usersController('users'), usersController('people'), First, Second],
})(Root)

const app = await NestFactory.create(Root, { logger: false })
await app.listen(0, '127.0.0.1')
console.log(await app.getUrl())
