import { described, withSchema } from '../../validation/kind.js'
import { boolean, oneOf, text, wholeNumber } from '../../validation/kinds.js'
import { nullable, object } from '../../validation/structures.js'
import { openObject, textOrNull } from './common-schemas.js'

const sinceAt = described(nullable(wholeNumber(0)), 'Time of the last status change. Epoch milliseconds.')
const error = textOrNull()
const open = { isOpen: true }

export const liveSchema = openObject('Live', { status: oneOf(['UP']) })

export const readyQuerySchema = object(
  {},
  { strict: described(boolean, 'Also respond with 503 if DEGRADED. Default: false.') },
)

export const readySchema = openObject('Ready', {
  status: described(
    oneOf(['UP', 'DEGRADED', 'DOWN', 'STOPPING']),
    'DEGRADED: the shared store is unavailable, the rules are older than those of the rule store, or buckets of removed rules still have to be reset. DOWN: the gate is closed. STOPPING: the server is draining.',
  ),
  store: object({ status: oneOf(['UP', 'DOWN']), sinceAt, error }, {}, open),
  rules: object({ status: oneOf(['UP', 'STALE']), sinceAt, error }, {}, open),
})

const anyMembers = { additionalProperties: true }

export const infoSchema = withSchema(openObject('Info', {}), anyMembers)

export const openApiSchema = withSchema(openObject('OpenApi', { openapi: text }), anyMembers)
