import { balanceAtDescription, expiryDescription, overrideKinds } from '../../rules/schema/overrides/override-schema.js'
import { object } from '../../validation/structures.js'
import { cursorSchema, dateTime, listOf, openObject } from './common-schemas.js'

const { key, action, ...optional } = overrideKinds

export const overrideSchema = object(
  { key, action },
  { ...optional, expiresAt: dateTime(expiryDescription), balanceAt: dateTime(balanceAtDescription) },
  { title: 'Override' },
)

export const newOverrideSchema = object({ key, action }, optional, { title: 'NewOverride' })

/** `key` is optional, because the URL contains it. */
export const overrideBodySchema = object({ action }, { key, ...optional }, { title: 'OverrideToPut' })

export const overridePageSchema = openObject('OverridePage', {
  overrides: listOf(overrideSchema),
  cursor: cursorSchema,
})
