import { identifier, type JsonSchema } from '../../validation/setting-kinds.js'

const partsSchema = {
  type: 'array',
  items: {
    anyOf: [
      { type: 'string' },
      {
        type: 'object',
        properties: { name: { type: 'string' }, args: { type: 'object' } },
        required: ['name'],
        additionalProperties: false,
      },
    ],
  },
}

const timeoutSchema = { anyOf: [{ type: 'integer', minimum: 1 }, { type: 'string' }] }

/** JSON Schema of the routes, for editors. Predicates and filters are not described in detail. */
export const routesSchema: JsonSchema = {
  type: 'array',
  items: {
    type: 'object',
    properties: {
      id: identifier.schema,
      uri: { type: 'string' },
      predicates: partsSchema,
      filters: partsSchema,
      metadata: {
        type: 'object',
        properties: { connectTimeout: timeoutSchema, responseTimeout: timeoutSchema },
        additionalProperties: false,
      },
    },
    required: ['id', 'uri'],
    additionalProperties: false,
  },
}
