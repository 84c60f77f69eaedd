import { headerName } from '../../http/option-kinds.js'
import { methodName, pathPattern } from '../../rules/schema/fields/request-kinds.js'
import { givenAlias } from '../../validation/fields.js'
import type { Kind } from '../../validation/kind.js'
import { text } from '../../validation/kinds.js'
import { hostPattern, network, valuePattern } from './kinds.js'
import { commaList, type Notation, type Notations, notation, pair, several } from './notation.js'
import { headerIs, hostIs, methodIs, type Predicate, pathIs, queryIs, remoteAddressIs } from './predicates.js'

/** Predicates in the notation of Spring Cloud Gateway. The expanded form also accepts singular names and `name`. */
export const predicateNotations: Notations<Predicate> = {
  Path: listNotation('patterns', 'pattern', pathPattern, pathIs),
  Method: listNotation('methods', 'method', methodName, methodIs),
  Host: listNotation('patterns', 'pattern', hostPattern, hostIs),
  Header: notation({ header: headerName, name: headerName, regexp: valuePattern }, pair('header', 'regexp'), (args) => {
    const name = args.require(givenAlias(args, ['header', 'name']) ?? 'header')
    const regexp = args.read('regexp')
    return name === undefined ? undefined : headerIs(name, regexp)
  }),
  Query: notation({ param: text, name: text, regexp: valuePattern }, pair('param', 'regexp'), (args) => {
    const name = args.require(givenAlias(args, ['param', 'name']) ?? 'param')
    const regexp = args.read('regexp')
    return name === undefined ? undefined : queryIs(name, regexp)
  }),
  RemoteAddr: listNotation('sources', 'source', network, remoteAddressIs),
}

function listNotation<T>(
  plural: string,
  singular: string,
  item: Kind<T>,
  predicate: (values: readonly T[]) => Predicate,
): Notation<Predicate> {
  const kinds: Readonly<Record<string, Kind<readonly T[]>>> = { [plural]: several(item), [singular]: several(item) }
  return notation(kinds, commaList(plural), (args) =>
    predicate(args.require(givenAlias(args, [plural, singular]) ?? plural) ?? []),
  )
}
