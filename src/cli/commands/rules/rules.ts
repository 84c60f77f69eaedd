import { Command } from 'commander'
import { rulesApplyCommand, rulesDiffCommand } from './apply.js'
import { rulesExportCommand, rulesGetCommand } from './get.js'
import { rulesListCommand } from './list.js'
import { rulesValidateCommand } from './validate.js'

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
