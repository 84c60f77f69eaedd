import { banInputKinds } from '../../rules/schema/bans/ban-input.js'
import { described } from '../../validation/kind.js'
import { wholeNumber } from '../../validation/kinds.js'
import { object } from '../../validation/structures.js'
import { count, cursorSchema, dateTime, listOf, openObject } from './common-schemas.js'

const { key, ...optional } = banInputKinds

export const activeBanSchema = openObject('ActiveBan', {
  key,
  until: dateTime('The end of the ban.'),
  retryAfterMs: described(wholeNumber(0), 'The rest of the ban in milliseconds.'),
  count: count(
    'The number of bans since the escalation started; 0 for a ban that was set by hand, without earlier ones.',
  ),
})

export const newBanSchema = object({ key }, optional, { title: 'NewBan' })

/** `key` is optional, because the URL contains it. */
export const banBodySchema = object({}, { key, ...optional }, { title: 'BanToPut' })

export const banPageSchema = openObject('BanPage', { bans: listOf(activeBanSchema), cursor: cursorSchema })
