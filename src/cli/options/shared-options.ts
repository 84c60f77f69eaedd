/** Options that several commands have, each defined once. */
import { Option } from 'commander'
import { wholeNumber } from './option-values.js'

export const rulesOption = (): Option =>
  new Option('--rules <file>', 'rules file, YAML or JSON (default: rules of the configuration, or ./rules.yaml)')

/** `content` describes the part of the configuration file that the command uses. */
export const configOption = (content = '', fallback = './fluxgate.yaml, if it exists'): Option =>
  new Option('--config <file>', `configuration file${content && ` with ${content}`} (default: ${fallback})`)

export const ruleSetOption = (): Option =>
  new Option('--rule-set <id>', 'rule set to use (default: the only one, or the one named default)')

export const portOption = (name: string, port: string, defaultPort: number): Option =>
  new Option(`${name} <n>`, `${port}; 0 picks a free one (default: ${defaultPort})`).argParser(wholeNumber(0, 65_535))

export const grpcPortOption = (): Option =>
  new Option(
    '--grpc-port <n>',
    "port of Envoy's rate limit service; 0 picks a free one (default: no such service)",
  ).argParser(wholeNumber(0, 65_535))

export const workersOption = (): Option =>
  new Option('--workers <n>', 'number of worker processes (default: 1)').argParser(wholeNumber(1, 256))

export const jsonLinesOption = (): Option => new Option('--json', 'print one JSON document per line')
