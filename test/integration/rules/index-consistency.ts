import { expect } from 'vitest'
import { ruleTrigrams } from '../../../src/rules/redis/trigrams.js'
import { isEnabled, priorityOf } from '../../../src/rules/store/rule-document.js'

/** The part of ioredis that is needed here. */
interface Client {
  call(...command: string[]): Promise<unknown>
}

/** Expects that every index of every rule set matches its rules: no entry is missing or left over. */
export async function checkIndexes(client: Client, prefix: string): Promise<void> {
  const ask = async (...command: string[]) => [await client.call(...command)].flat(2).map(String)
  const base = `${prefix}:{${prefix}:rules}:`
  const heads = (await ask('KEYS', `${base}head:*`)).map((key) => key.slice(`${base}head:`.length))
  const existing: string[] = []
  for (const id of heads) {
    const rules = (await ask('HVALS', `${base}rules:${id}`)).map((text) => JSON.parse(text))
    const pieces = rules.map((rule) => [rule.id, ruleTrigrams(rule)] as const)
    expect(await ask('ZRANGE', `${base}ranks:${id}`, '0', '-1', 'WITHSCORES')).toEqual(
      rules
        .toSorted((a, b) => priorityOf(b) - priorityOf(a) || (a.id < b.id ? -1 : 1))
        .flatMap((rule) => [rule.id, String(-priorityOf(rule))]),
    )
    expect((await ask('SMEMBERS', `${base}disabled:${id}`)).sort()).toEqual(
      rules
        .filter((rule) => !isEnabled(rule))
        .map((rule) => rule.id)
        .sort(),
    )
    expect((await ask('ZRANGE', `${base}texts:${id}`, '0', '-1')).sort()).toEqual(
      pieces.flatMap(([ruleId, own]) => own.map((piece) => `${piece}\0${ruleId}`)).sort(),
    )
    expect(new Set(await ask('HKEYS', `${base}pieces:${id}`))).toEqual(new Set(rules.map((rule) => rule.id)))
    const isThere = Number(await client.call('HEXISTS', `${base}head:${id}`, 'head')) === 1
    if (isThere) existing.push(id)
    else expect(rules).toEqual([])
  }
  expect((await ask('ZRANGE', `${base}sets`, '0', '-1')).sort()).toEqual(existing.sort())
}
