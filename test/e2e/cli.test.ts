/** The built command line as a process, as users and scripts run it. */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { sharedRedis } from '../servers/shared-redis.js'
import { commandLine, root } from './command-line.js'

const { file, fluxgate, shell, remove } = commandLine()

const logLine = (second: number, ip = '203.0.113.7', request = 'POST /login'): string =>
  `${ip} - - [31/Jan/2026:12:00:${String(second).padStart(2, '0')} +0000] "${request} HTTP/1.1" 200 1 "-" "-"`

const rules = `
ruleSets:
  - id: api
    rules:
      - { id: per-address, bands: [{ capacity: 100, window: 1m }] }
      - { id: login, path: /login, method: POST, bands: [{ capacity: 2, window: 1m }] }
      - { id: beta, path: /login, mode: SHADOW, when: { attributes.tier: beta }, bands: [{ capacity: 1, window: 1m }] }
`

beforeAll(() => {
  writeFileSync(file('rules.yaml'), rules)
  writeFileSync(file('two-sets.json'), '[{"id":"a","rules":[]},{"id":"b","rules":[]}]')
  writeFileSync(
    file('wrong.yaml'),
    'ruleSets: [{ id: x, rules: [{ id: a, bandz: 3 }, { id: a, bands: [{ capacity: -1, window: 1m }] }] }]',
  )
  writeFileSync(file('access.log'), [0, 1, 2, 3].map((second) => logLine(second)).join('\n'))
  writeFileSync(file('page.html'), '<html>\n<body>\n</body>\n')
})
afterAll(remove)

describe('fluxgate', () => {
  it('prints its version', () => {
    const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))
    expect(fluxgate(['--version'])).toEqual({ status: 0, stdout: `${version}\n`, stderr: '' })
  })

  it.each(['', 'start', 'gateway', 'check', 'rules', 'rules validate', 'simulate'])(
    'prints the help of %s on standard output',
    (command) => {
      const { status, stdout, stderr } = fluxgate([...command.split(' ').filter(Boolean), '--help'])
      expect({ status, stderr }).toEqual({ status: 0, stderr: '' })
      expect(stdout).toMatch(/^Usage: fluxgate/)
      if (!stdout.includes('\nCommands:\n')) expect(stdout).toMatch(/\nExamples:\n {2}\$ .*fluxgate/)
    },
  )

  it.each([
    [[], 'Usage: fluxgate'],
    [['simulat'], 'Did you mean simulate?'],
    [['rules'], 'Usage: fluxgate rules'],
    [['rules', 'validate'], "missing required argument 'files'"],
    [['check', '--bogus'], "unknown option '--bogus'"],
    [['check', '--permits', '-1'], 'It must be an integer from 0'],
    [['check', '--header', 'novalue'], 'It must have the form name:value.'],
    [['check', '--rules', 'none.yaml'], 'There is no rules file none.yaml'],
    [['check', '--rules', 'wrong.yaml'], '\n  ruleSets[0].rules[0].bandz: unknown field'],
    [['check', '--rules', 'rules.yaml', '--config', 'x.yaml'], 'cannot be used with'],
    [['check', '--rule-set', 'apu'], 'Rule set "apu" does not exist. Did you mean "api"? Known rule sets: api.'],
    [['check', '--rules', 'two-sets.json'], 'The rules contain 2 rule sets. Choose one with --rule-set: a, b.'],
    [['simulate', '--algorithm', 'tokn-bucket'], 'Did you mean TOKEN_BUCKET?'],
    [['simulate', '--capacity', 'many'], 'It must be an integer from 1'],
    [['simulate', '--capacity', '-5'], 'It must be an integer from 1'],
    [['simulate', '--rate', '0'], 'It must be a number greater than 0'],
    [['simulate', '--window', 'soon'], 'text such as 500ms'],
    [['simulate', '--window', '0s'], 'from 1ms to 366d'],
    [['simulate', '--every', '0s'], '--every and --duration must be greater than 0.'],
    [['simulate', '--traffic', 'tsunami'], 'Allowed choices are uniform, poisson, burst.'],
    [['simulate', '--rate', '10000000', '--duration', '1d'], 'the maximum is 200000000'],
    [
      ['simulate', '--algorithm', 'sliding-window-log', '--capacity', '100001'],
      'at most 100000 with SLIDING_WINDOW_LOG',
    ],
    [['simulate', '--from', 'none.log'], 'File not found: none.log.'],
    [['simulate', '--from', '.'], '. is a directory'],
    [['simulate', '--from', 'page.html'], 'page.html has an unknown format'],
    [['simulate', '--from', 'access.log', '--rate', '5'], 'cannot be used with'],
    [['simulate', '--path', '/login'], 'Options that describe a request, such as --path, need --rules <file>.'],
    [['simulate', '--rules', 'rules.yaml', '--from', 'access.log', '--path', '/login'], 'cannot be used with'],
    [['simulate', '--rate', '5', '--burst', '3'], '--burst, --every and --spread apply to burst traffic'],
    [['simulate', '--traffic', 'burst', '--rate', '5'], '--rate applies to uniform and poisson traffic'],
    [['simulate', '--rule-set', 'api'], '--rule-set needs --rules'],
    [
      ['simulate', '--algorithm', 'concurrency'],
      'CONCURRENCY limits requests in progress, and the traffic has no durat',
    ],
    [['simulate', '--from', 'access.log', '--algorithm', 'concurrency'], 'CONCURRENCY limits requests in progress'],
    [['simulate', '--cost', 'tokens=5'], '--permits, --cost and --cost-field need --rules <file>.'],
    [['simulate', '--duration-field', 'took=ms'], '--duration-field and --cost-field need --from <file>.'],
    [['simulate', '--from', 'access.log', '--duration-field', 'took=hours'], 'Units: ns, us, ms, s.'],
    [['simulate', '--start-at', 'noon'], 'It must be a date, or a date and time'],
    [['simulate', '--rules', 'rules.yaml', '--from', 'access.log', '--capacity', '5'], 'cannot be used with'],
  ])('rejects invalid usage %j with status 2 and a message on standard error', (args, message) => {
    const { status, stdout, stderr } = fluxgate(args)
    expect({ status, stdout }).toEqual({ status: 2, stdout: '' })
    expect(stderr).toContain(message)
    expect(stderr).not.toMatch(/\n\s+at /)
  })

  it.each(['fluxgate simulate --json | head -c 10', 'fluxgate simulate | head -1', 'fluxgate --help | true'])(
    'ignores a closed output pipe: %s',
    (command) => {
      const { stderr } = shell(`set -o pipefail; ${command} > /dev/null; exit "\${PIPESTATUS[0]}"`)
      expect(stderr).toBe('')
    },
  )

  it('prints no colors to a pipe', () => {
    expect(fluxgate(['simulate'], { env: { FORCE_COLOR: '1' } }).stdout).not.toContain('\u001b')
  })
})

describe('fluxgate check', () => {
  const login = ['check', '--ip', '203.0.113.7', '--method', 'post', '--path', '//login/']

  it('prints a decision and exits with 0 if the request is allowed', () => {
    const { status, stdout, stderr } = fluxgate(login)
    expect({ status, stderr }).toEqual({ status: 0, stderr: '' })
    expect(JSON.parse(stdout)).toMatchObject({
      allowed: true,
      reason: 'ALLOWED',
      ruleSetId: 'api',
      ruleId: 'login',
      key: '203.0.113.7',
      limit: 2,
      remaining: 1,
      retryAfterMs: 0,
    })
  })

  it('exits with 1 if a request is rejected: two of three logins are allowed', () => {
    expect(fluxgate([...login, '--repeat', '2']).status).toBe(0)
    const third = fluxgate([...login, '--repeat', '3'])
    expect(third.status).toBe(1)
    expect(JSON.parse(third.stdout)).toMatchObject({ allowed: false, reason: 'LIMITED', retryAfterMs: 30_000 })
  })

  it('prints the decisions of repeated requests as one JSON list', () => {
    const { status, stdout } = fluxgate([...login, '--repeat', '4', '--json'])
    expect(status).toBe(1)
    expect(JSON.parse(stdout).map(({ allowed }: { allowed: boolean }) => allowed)).toEqual([true, true, false, false])
    expect(JSON.parse(fluxgate([...login, '--json']).stdout).allowed).toBe(true)
  })

  it('charges nothing with --peek, and rejects more permits than the capacity', () => {
    expect(JSON.parse(fluxgate([...login, '--repeat', '5', '--peek']).stdout)).toMatchObject({ allowed: true })
    const impossible = fluxgate([...login, '--permits', '3'])
    expect(impossible.status).toBe(1)
    expect(JSON.parse(impossible.stdout)).toMatchObject({ reason: 'IMPOSSIBLE', retryAfterMs: null })
  })

  it('releases the slots of requests in progress before it exits, unless they are held', () => {
    const slots =
      '{"id":"s","rules":[{"id":"slots","algorithm":"CONCURRENCY","bands":[{"capacity":1,"maxHold":"1h"}]}]}'
    writeFileSync(file('slots.json'), slots)
    const { uri } = sharedRedis()
    const settings = { rules: { path: 'slots.json' }, store: { uri, prefix: `check-${process.pid}` } }
    writeFileSync(file('slots.yaml'), JSON.stringify(settings))
    const check = (...args: string[]) => fluxgate(['check', '--config', 'slots.yaml', '--ip', '203.0.113.9', ...args])
    // Repeated requests are in progress at the same time.
    expect(JSON.parse(check('--repeat', '2', '--json').stdout)).toMatchObject([{ allowed: true }, { allowed: false }])
    expect(check().status).toBe(0)
    expect(JSON.parse(check('--hold').stdout)).toMatchObject({ allowed: true, holdId: expect.any(String) })
    expect(check().status).toBe(1)
  })

  it('uses the rules and the default rule set of a configuration', () => {
    mkdirSync(file('conf'))
    writeFileSync(file('conf/fluxgate.yaml'), 'rules: { path: ../two-sets.json }\nratelimit: { defaultRuleSetId: b }\n')
    const { status, stdout } = fluxgate(['check', '--config', 'conf/fluxgate.yaml'])
    expect(status).toBe(0)
    expect(JSON.parse(stdout)).toMatchObject({ ruleSetId: 'b', reason: 'NO_RULE' })
    writeFileSync(file('conf/wrong.yaml'), 'rulez: 3\nreload: { strategy: NEVER }\n')
    const wrong = fluxgate(['check', '--config', 'conf/wrong.yaml'])
    expect(wrong).toMatchObject({ status: 2, stdout: '' })
    expect(wrong.stderr).toMatch(/\n {2}rulez: .*\n {2}reload\.strategy: /)
  })

  it('uses ./fluxgate.yaml and the environment, like a server started in the same directory', () => {
    const there = commandLine()
    onTestFinished(there.remove)
    writeFileSync(
      there.file('limits.json'),
      '{"id":"here","rules":[{"id":"one","bands":[{"capacity":1,"window":"1m"}]}]}',
    )
    const rulesPath = { FLUXGATE_RULES_PATH: 'limits.json' }
    expect(there.fluxgate(['check']).stderr).toContain('There is no rules file rules.yaml')
    expect(JSON.parse(there.fluxgate(['check'], { env: rulesPath }).stdout)).toMatchObject({ ruleSetId: 'here' })
    expect(there.fluxgate(['rules', 'list'], { env: rulesPath }).stdout).toContain('\nhere ')
    writeFileSync(there.file('fluxgate.yaml'), 'rules: { path: limits.json }\n')
    expect(JSON.parse(there.fluxgate(['check']).stdout)).toMatchObject({ ruleSetId: 'here', ruleId: 'one' })
    expect(there.fluxgate(['rules', 'list']).stdout).toContain('\nhere ')
  })

  it('passes attributes to the rules', () => {
    const { stdout } = fluxgate([...login, '--attribute', 'tier=beta', '--attribute', 'x=y', '--header', 'X-App:ios'])
    expect(JSON.parse(stdout).bands.map(({ ruleId }: { ruleId: string }) => ruleId)).toContain('beta')
  })
})

describe('fluxgate rules validate', () => {
  it('prints the number of rule sets and rules of each valid file', () => {
    const { status, stdout, stderr } = fluxgate(['rules', 'validate', 'rules.yaml', 'two-sets.json'])
    expect({ status, stderr }).toEqual({ status: 0, stderr: '' })
    expect(stdout).toBe('✓ rules.yaml: 1 rule set, 3 rules\n✓ two-sets.json: 2 rule sets, 0 rules\n')
  })

  it('reports every issue of every file with its path, and exits with 1', () => {
    const { status, stdout, stderr } = fluxgate(['rules', 'validate', 'wrong.yaml', 'rules.yaml'])
    expect(status).toBe(1)
    expect(stdout).toBe('✓ rules.yaml: 1 rule set, 3 rules\n')
    expect(stderr.trimEnd().split('\n')).toHaveLength(4)
    expect(stderr).toMatch(
      /✗ wrong\.yaml: ruleSets\[0\]\.rules\[1\]\.bands\[0\]\.capacity: must be .*; received -1 \(line \d+, column \d+\)/,
    )
  })

  it('prints the same as JSON', () => {
    expect(JSON.parse(fluxgate(['rules', 'validate', 'rules.yaml', '--json']).stdout)).toEqual({
      valid: true,
      errors: [],
    })
    const { status, stdout, stderr } = fluxgate(['rules', 'validate', 'wrong.yaml', '--json'])
    expect({ status, stderr }).toEqual({ status: 1, stderr: '' })
    const { valid, errors } = JSON.parse(stdout)
    expect(valid).toBe(false)
    expect(errors).toHaveLength(4)
    expect(errors[0]).toEqual({
      file: 'wrong.yaml',
      path: 'ruleSets[0].rules[0].bandz',
      message: expect.any(String),
      line: expect.any(Number),
      column: expect.any(Number),
    })
  })

  it('reads YAML and JSON from standard input, and reports the position of syntax errors', () => {
    const validate = (input: string) => fluxgate(['rules', 'validate', '-'], { input })
    expect(validate(rules)).toMatchObject({ status: 0, stdout: '✓ standard input: 1 rule set, 3 rules\n' })
    expect(validate('{"id":"a","rules":[]}')).toMatchObject({
      status: 0,
      stdout: '✓ standard input: 1 rule set, 0 rules\n',
    })
    expect(validate('ruleSets: [').stderr).toMatch(/^✗ standard input: line \d+, column \d+: /)
    expect(validate('').status).toBe(1)
  })

  it('distinguishes an unreadable file from an invalid one', () => {
    const { status, stdout, stderr } = fluxgate(['rules', 'validate', 'rules.yaml', 'none.yaml'])
    expect(status).toBe(2)
    expect(stdout).toContain('✓ rules.yaml')
    expect(stderr).toContain('There is no rules file none.yaml')
  })
})

describe('fluxgate simulate', () => {
  type Run = Record<string, number> & { algorithm: string; buckets: Record<string, number>[] }
  const simulate = (...args: string[]): { runs: Run[]; [field: string]: unknown } =>
    JSON.parse(fluxgate(['simulate', '--json', ...args]).stdout)
  const byAlgorithm = (runs: Run[], field: string) => Object.fromEntries(runs.map((run) => [run.algorithm, run[field]]))

  it('shows by default that a fixed window allows twice the capacity around a boundary, and sliding windows do not', () => {
    const { runs } = simulate()
    expect(byAlgorithm(runs, 'mostInAnyWindow')).toEqual({
      TOKEN_BUCKET: 11,
      LEAKY_BUCKET: 10,
      FIXED_WINDOW: 20,
      SLIDING_WINDOW_LOG: 10,
      SLIDING_WINDOW_COUNTER: 10,
    })
    const { stdout } = fluxgate(['simulate'])
    expect(stdout).toMatch(/^FIXED_WINDOW .*20 in 1s, limit 10\n +20 ┤ +█/m)
    expect(stdout).toMatch(/^SLIDING_WINDOW_LOG .*10 in 1s, limit 10\n +10 ┼┄+\n/m)
  })

  it('shows that a leaky bucket spaces requests evenly and a token bucket does not', () => {
    const { runs } = simulate(
      '--algorithm',
      'token-bucket,leaky-bucket',
      '--burst',
      '10',
      '--every',
      '1m',
      '--duration',
      '1m',
    )
    expect(runs[0]).toMatchObject({ algorithm: 'TOKEN_BUCKET', allowed: 10, smallestGapMs: 0, longestGapMs: 0 })
    expect(runs[1]).toMatchObject({
      algorithm: 'LEAKY_BUCKET',
      allowed: 10,
      smallestGapMs: 100,
      longestGapMs: 100,
      maxDelayMs: 900,
    })
  })

  it('allows 10/s plus the initial burst if 11/s arrive for 100 s', () => {
    const { runs } = simulate('--algorithm', 'token-bucket', '--rate', '11', '--duration', '100s')
    expect(runs[0]).toMatchObject({ offered: 1_100, allowed: 1_009, rejected: 91 })
  })

  it('describes each run completely', () => {
    const { runs, ...document } = simulate(
      '--algorithm',
      'token-bucket',
      '--capacity',
      '5',
      '--refill',
      'interval',
      '--refill-tokens',
      '2',
    )
    expect(document).toMatchObject({
      traffic: expect.stringContaining('bursts of 10'),
      startAtMs: 0,
      bucketMs: 10,
      windowMs: 1_000,
    })
    expect(runs[0]).toMatchObject({
      algorithm: 'TOKEN_BUCKET',
      capacity: 5,
      refillTokens: 2,
      refill: 'INTERVAL',
      windowMs: 1_000,
    })
    expect(Object.keys(runs[0]?.buckets[0] ?? {})).toEqual([
      'offered',
      'allowed',
      'rejected',
      'delayed',
      'released',
      'peak',
    ])
    expect(runs[0]?.buckets).toHaveLength(600)
  })

  it('repeats a run with the same seed exactly, and differs for another seed', () => {
    const run = (seed: string): string => fluxgate(['simulate', '--traffic', 'poisson', '--seed', seed]).stdout
    expect(run('5')).toBe(run('5'))
    expect(run('5').split('\n').slice(2)).not.toEqual(run('6').split('\n').slice(2))
  })

  it('omits the sliding window log above its maximum capacity by default', () => {
    const names = simulate('--capacity', '100001', '--rate', '10').runs.map(({ algorithm }) => algorithm)
    expect(names).toEqual(['TOKEN_BUCKET', 'LEAKY_BUCKET', 'FIXED_WINDOW', 'SLIDING_WINDOW_COUNTER'])
  })

  it('replays a recording from a file, compressed or not, and from standard input, and reports invalid lines', () => {
    const log = `${[0, 1, 2, 3].map((second) => logLine(second)).join('\n')}\noops\n`
    writeFileSync(file('bad.log'), log)
    writeFileSync(file('bad.log.gz'), gzipSync(log))
    const options = ['--algorithm', 'fixed-window', '--capacity', '1', '--window', '2s']
    const recording = { format: 'access log', lines: 5, badLines: 1, badLineNumbers: [5], withDuration: 0, moved: 0 }
    for (const name of ['bad.log', 'bad.log.gz']) {
      const { runs, ...document } = simulate('--from', name, ...options)
      expect(document).toMatchObject({ traffic: name, recording, startAtMs: Date.UTC(2026, 0, 31, 12) })
      expect(runs[0]).toMatchObject({ offered: 4, allowed: 2 })
    }
    const { stdout } = fluxgate(['simulate', '--from', '-', ...options], { input: log })
    expect(stdout).toContain('\n1 line could not be parsed: 5\n')
  })

  it('reports an empty or corrupt recording', () => {
    expect(fluxgate(['simulate', '--from', '-'])).toMatchObject({ status: 0, stderr: '' })
    expect(fluxgate(['simulate', '--from', '-']).stdout).toMatch(/^10 per 1s · standard input contains no requests\n/)
    writeFileSync(file('broken.gz'), 'not packed')
    const { status, stderr } = fluxgate(['simulate', '--from', 'broken.gz'])
    expect(status).toBe(2)
    expect(stderr).toContain('Cannot read broken.gz: ')
  })

  it('summarises a recording per rule', () => {
    const {
      rules: perRule,
      total,
      withoutRule,
    } = simulate('--from', 'access.log', '--rules', 'rules.yaml') as never as Record<string, unknown>
    expect(perRule).toEqual([
      { ruleId: 'login', applied: 4, allowed: 2, rejected: 2, banned: 0, shadowRejected: 0 },
      { ruleId: 'per-address', applied: 4, allowed: 2, rejected: 0, banned: 0, shadowRejected: 0 },
    ])
    expect(total).toMatchObject({ offered: 4, allowed: 2, rejected: 2 })
    expect(withoutRule).toBe(0)
    expect(fluxgate(['simulate', '--from', 'access.log', '--rules', 'rules.yaml']).stdout).toContain(
      'all requests        4',
    )
  })

  it('repeats one request against a rule set, by default in bursts of its most restrictive limit', () => {
    const login = ['--rules', 'rules.yaml', '--ip', '203.0.113.7', '--method', 'post', '--path', '/login']
    const { rules: perRule, total, ...document } = simulate(...login) as never as Record<string, unknown>
    expect(document).toMatchObject({ rulesFile: 'rules.yaml', startAtMs: 0, withoutRule: 0 })
    expect(document.traffic).toBe('bursts of 4 over 12s, every 2m from 54s')
    expect(total).toMatchObject({ offered: 12, allowed: 6, rejected: 6 })
    expect(perRule).toEqual([
      { ruleId: 'login', applied: 12, allowed: 6, rejected: 6, banned: 0, shadowRejected: 0 },
      { ruleId: 'per-address', applied: 12, allowed: 6, rejected: 0, banned: 0, shadowRejected: 0 },
    ])
    const poisson = simulate(...login, '--traffic', 'poisson', '--rate', '1', '--duration', '1h', '--seed', '3')
    expect(poisson).toMatchObject({ traffic: 'poisson 1/s, seed 3', total: { allowed: 121 } })
    expect(fluxgate(['simulate', ...login]).stdout).toMatch(/^rules\.yaml · bursts of 4 .* · 6m\n/)
  })

  it('reads a large recording in little memory', { timeout: 120_000 }, () => {
    // 60 MB of lines would not fit twice into 96 MB of heap.
    const block = Array.from({ length: 10_000 }, (_, i) => logLine(i % 60)).join('\n')
    const script = `const b=${JSON.stringify(block)};for(let i=0;i<70;i++)process.stdout.write(b+'\\n')`
    writeFileSync(file('large.cjs'), script)
    const { status, stdout, stderr } = shell(
      'node large.cjs | NODE_OPTIONS=--max-old-space-size=96 fluxgate simulate --from - --algorithm token-bucket --json | head -c 200',
    )
    expect({ status, stderr }).toEqual({ status: 0, stderr: '' })
    expect(stdout).toContain('"lines":700000')
  })
})
