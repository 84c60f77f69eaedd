/** Parsers for option values. They throw an `InvalidArgumentError` that describes the allowed values. */
import { InvalidArgumentError } from 'commander'
import { type AlgorithmName, algorithmNames, type Costs } from '../../core/rule.js'
import { algorithmKind } from '../../rules/schema/fields/band-schema.js'
import { durationForms, durationTicks } from '../../validation/duration.js'
import { nearest } from '../../validation/nearest.js'

export function wholeNumber(min: number, max: number): (text: string) => number {
  return (text) => {
    const value = /^\d{1,15}$/.test(text.trim()) ? Number(text) : Number.NaN
    if (value >= min && value <= max) return value
    throw new InvalidArgumentError(`It must be an integer from ${min} to ${max}.`)
  }
}

export function positiveNumber(max: number): (text: string) => number {
  return (text) => {
    const value = /^\d+(\.\d+)?$/.test(text.trim()) ? Number(text) : Number.NaN
    if (value > 0 && value <= max) return value
    throw new InvalidArgumentError(`It must be a number greater than 0 and at most ${max}.`)
  }
}

/** Returns ticks (microseconds). */
export function duration(text: string): number {
  const isNumber = /^\d+(\.\d+)?$/.test(text.trim())
  const ticks = durationTicks(isNumber ? Number(text) : text.trim())
  if (ticks !== undefined) return ticks
  throw new InvalidArgumentError(`It must be ${durationForms}.`)
}

/** The algorithms of limits per time, which are simulated by default. */
export const rateAlgorithms = algorithmNames.filter((name) => name !== 'CONCURRENCY')

export function algorithms(text: string): AlgorithmName[] {
  if (text.trim().toLowerCase() === 'all') return [...rateAlgorithms]
  return text.split(',').map((name) => {
    const known = algorithmKind.parse(name.trim())
    if (known) return known
    const suggestion = nearest(name.trim(), algorithmNames)
    const hint = suggestion ? ` Did you mean ${suggestion}?` : ''
    throw new InvalidArgumentError(
      `Unknown algorithm ${JSON.stringify(name)}.${hint} Use ${algorithmNames.join(', ')}, or all.`,
    )
  })
}

/** Collects a repeatable cost such as `tokens=1200`. */
export function costs(text: string, before: Costs = {}): Costs {
  const [, name = '', amount = ''] = /^([A-Za-z0-9._:-]{1,128})=(\d{1,10})$/.exec(text) ?? []
  if (name === '') throw new InvalidArgumentError('It must be a name and an integer, such as tokens=1200.')
  return { ...before, [name]: Number(amount) }
}

/** Collects a repeatable `name<separator>value` option. */
export function pairs(separator: string) {
  return (text: string, previous: Record<string, string> = {}): Record<string, string> => {
    const place = text.indexOf(separator)
    if (place < 1) throw new InvalidArgumentError(`It must have the form name${separator}value.`)
    return { ...previous, [text.slice(0, place).trim()]: text.slice(place + 1).trim() }
  }
}
