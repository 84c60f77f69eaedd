import { Command } from 'commander'
import { rulesApplyCommand, rulesDiffCommand } from './rules-apply.js'
import { rulesExportCommand, rulesGetCommand } from './rules-get.js'
import { rulesListCommand } from './rules-list.js'
import { rulesValidateCommand } from './rules-validate.js'

export function rulesCommand(): Command {
  return new Command('rules')
    .description('Work with rules: in a file, where a configuration keeps them, or on a server.')
    .addCommand(rulesListCommand())
    .addCommand(rulesGetCommand())
    .addCommand(rulesApplyCommand())
    .addCommand(rulesDiffCommand())
    .addCommand(rulesExportCommand())
    .addCommand(rulesValidateCommand())
}
