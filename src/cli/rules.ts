import { Command } from 'commander'
import { rulesApplyCommand, rulesDiffCommand } from './rules-apply.js'
import { rulesExportCommand, rulesGetCommand } from './rules-get.js'
import { rulesListCommand } from './rules-list.js'
import { rulesValidateCommand } from './rules-validate.js'

export function rulesCommand(): Command {
  return new Command('rules')
    .description('Show, compare, apply and validate rules in a file, a rule store or on a server.')
    .addCommand(rulesListCommand())
    .addCommand(rulesGetCommand())
    .addCommand(rulesApplyCommand())
    .addCommand(rulesDiffCommand())
    .addCommand(rulesExportCommand())
    .addCommand(rulesValidateCommand())
}
