import { describe, expect, it } from 'vitest'
import { FluxGateError } from '../core/errors.js'
import { describeFailure, UsageError } from './failure.js'

describe('describeFailure', () => {
  it('lists every issue once, on its own line with its path', () => {
    const errors = [
      { path: 'server.port', message: 'received "x"' },
      { path: 'store', message: 'received 3' },
    ]
    const bare = new FluxGateError('FLUXGATE_CONFIG_INVALID', 'fluxgate.yaml has 2 errors', { errors })
    expect(describeFailure(bare, {})).toBe(
      'fluxgate.yaml has 2 errors\n  server.port: received "x"\n  store: received 3',
    )
    const complete = new FluxGateError('FLUXGATE_CONFIG_INVALID', describeFailure(bare, {}), { errors })
    expect(describeFailure(complete, {})).toBe(complete.message)
  })

  it('shows the stack trace only with DEBUG', () => {
    const error = new TypeError('x is not a function\nand more')
    expect(describeFailure(error, {})).toBe(
      'Unexpected error: x is not a function (set DEBUG=fluxgate for the stack trace)',
    )
    expect(describeFailure(error, { DEBUG: 'fluxgate' })).toContain('failure.test.ts')
    expect(describeFailure(new UsageError('No.'), { DEBUG: '*' })).toBe('No.')
    expect(describeFailure('text', {})).toContain('Unexpected error: text')
  })
})
