import { describe, expect, it } from 'vitest'
import type { RedisConnection } from './connection.js'
import { Script } from './script.js'

type Command = readonly (string | Buffer)[]
type Caller = Pick<RedisConnection, 'call'>

/** A fake server that replies in order when `answer` is called. `forget` drops its scripts. */
function fakeServer() {
  const sent: string[] = []
  const waiting: (() => void)[] = []
  let knows = false
  const connection: Caller = {
    call(_key, [name, script, , ...rest]: Command) {
      sent.push(`${String(name)} ${String(rest.at(-1))}`)
      return new Promise((resolve, reject) => {
        waiting.push(() => {
          if (name === 'EVAL') knows = true
          if (knows) resolve(`${String(script)} did ${String(rest.at(-1))}`)
          else reject(new Error('NOSCRIPT No matching script. Please use EVAL.'))
        })
      })
    },
  }
  return {
    connection,
    sent,
    forget: () => {
      knows = false
    },
    /** Replies to every command sent so far. */
    async answer() {
      for (const next of waiting.splice(0)) next()
      await new Promise((resolve) => setImmediate(resolve))
    },
  }
}

const run = (script: Script, connection: Caller, arg: string, route = 0): Promise<unknown> =>
  script.run(connection, route, ['key'], [arg])

describe('Script', () => {
  it('sends EVALSHA in the same turn and EVAL only if the server lacks the script', async () => {
    const { connection, sent, answer } = fakeServer()
    const script = new Script({ sha: 'sha', source: 'text' })
    const first = run(script, connection, 'a')
    expect(sent).toEqual(['EVALSHA a'])
    await answer()
    await answer()
    expect(await first).toBe('text did a')
    const second = run(script, connection, 'b')
    await answer()
    expect(await second).toBe('sha did b')
    expect(sent).toEqual(['EVALSHA a', 'EVAL a', 'EVALSHA b'])
  })

  it('sends the source once for concurrent calls and keeps their order', async () => {
    const { connection, sent, answer } = fakeServer()
    const script = new Script({ sha: 'sha', source: 'text' })
    const calls = ['a', 'b', 'c'].map((arg) => run(script, connection, arg))
    await answer()
    // This call is made while the EVAL is in flight.
    calls.push(run(script, connection, 'd'))
    expect(sent).toEqual(['EVALSHA a', 'EVALSHA b', 'EVALSHA c', 'EVAL a'])
    await answer()
    await answer()
    expect(sent.slice(4)).toEqual(['EVALSHA b', 'EVALSHA c', 'EVALSHA d'])
    expect(await Promise.all(calls)).toEqual(['text did a', 'sha did b', 'sha did c', 'sha did d'])
  })

  it('sends the source once more if the server loses it again', async () => {
    const { connection, sent, answer, forget } = fakeServer()
    const script = new Script({ sha: 'sha', source: 'text' })
    const calls = ['a', 'b', 'c'].map((arg) => run(script, connection, arg))
    await answer()
    await answer()
    forget()
    await answer()
    await answer()
    await answer()
    await Promise.all(calls)
    expect(sent).toEqual([
      'EVALSHA a',
      'EVALSHA b',
      'EVALSHA c',
      'EVAL a',
      'EVALSHA b',
      'EVALSHA c',
      'EVAL b',
      'EVALSHA c',
    ])
  })

  it('sends the source to each route separately', async () => {
    const { connection, sent, answer } = fakeServer()
    const script = new Script({ sha: 'sha', source: 'text' })
    const calls = [run(script, connection, 'a', 1), run(script, connection, 'b', 2)]
    await answer()
    expect(sent.slice(2)).toEqual(['EVAL a', 'EVAL b'])
    await answer()
    await Promise.all(calls)
  })

  it('does not retry after other errors', async () => {
    const sent: unknown[] = []
    const connection: Caller = {
      async call(_key, [name]: Command) {
        sent.push(name)
        throw new Error('OOM command not allowed')
      },
    }
    await expect(run(new Script({ sha: 'sha', source: 'text' }), connection, 'a')).rejects.toThrow('OOM')
    expect(sent).toEqual(['EVALSHA'])
  })

  it('rejects the call whose EVAL fails, and the next call sends the source', async () => {
    const sent: unknown[] = []
    const connection: Caller = {
      async call(_key, [name]: Command) {
        sent.push(name)
        throw new Error(name === 'EVAL' ? 'LOADING' : 'NOSCRIPT')
      },
    }
    const script = new Script({ sha: 'sha', source: 'text' })
    const calls = await Promise.allSettled(['a', 'b'].map((arg) => run(script, connection, arg)))
    expect(calls).toMatchObject(Array(2).fill({ status: 'rejected', reason: { message: 'LOADING' } }))
    expect(sent).toEqual(['EVALSHA', 'EVALSHA', 'EVAL', 'EVALSHA', 'EVAL'])
  })
})
