import { headerName } from '../../http/option-kinds.js'
import { methodName } from '../../rules/schema/method-schema.js'
import { pathPattern } from '../../rules/schema/path-schema.js'
import type { Fields } from '../../validation/fields.js'
import { text } from '../../validation/kinds.js'
import { hostPattern, network, valuePattern } from './kinds.js'
import { commaList, oneNamed, type PartForms, pair, severalOf } from './part.js'
import { headerIs, hostIs, methodIs, type Predicate, pathIs, queryIs, remoteAddressIs } from './predicates.js'

/** Predicates in the notation of Spring Cloud Gateway. The expanded form also accepts singular names and `name`. */
export const predicateForms: PartForms<Predicate> = {
  Path: {
    args: ['patterns', 'pattern'],
    short: commaList('patterns'),
    read: (args) => pathIs(severalOf(args, ['patterns', 'pattern'], pathPattern)),
  },
  Method: {
    args: ['methods', 'method'],
    short: commaList('methods'),
    read: (args) => methodIs(severalOf(args, ['methods', 'method'], methodName)),
  },
  Host: {
    args: ['patterns', 'pattern'],
    short: commaList('patterns'),
    read: (args) => hostIs(severalOf(args, ['patterns', 'pattern'], hostPattern)),
  },
  Header: {
    args: ['header', 'name', 'regexp'],
    short: pair('header', 'regexp'),
    read(args) {
      const name = oneNamed(args, ['header', 'name'], headerName)
      const regexp = regexpOf(args)
      return name === undefined ? undefined : headerIs(name, regexp)
    },
  },
  Query: {
    args: ['param', 'name', 'regexp'],
    short: pair('param', 'regexp'),
    read(args) {
      const name = oneNamed(args, ['param', 'name'], text)
      const regexp = regexpOf(args)
      return name === undefined ? undefined : queryIs(name, regexp)
    },
  },
  RemoteAddr: {
    args: ['sources', 'source'],
    short: commaList('sources'),
    read: (args) => remoteAddressIs(severalOf(args, ['sources', 'source'], network)),
  },
}

const regexpOf = (args: Fields): RegExp | undefined => args.read('regexp', valuePattern)
