import { Command } from 'commander'
import { rulesApplyCommand, rulesDiffCommand } from './apply.js'
import { rulesExportCommand, rulesGetCommand } from './get.js'
import { rulesImportCommand } from './import.js'
import { rulesListCommand } from './list.js'
import { rulesValidateCommand } from './validate.js'

export function rulesCommand(): Command {
  return new Command('rules')
    .description('Show, compare, apply, validate and import rules in a file, a rule store or on a server.')
    .addCommand(rulesListCommand())
    .addCommand(rulesGetCommand())
    .addCommand(rulesApplyCommand())
    .addCommand(rulesDiffCommand())
    .addCommand(rulesExportCommand())
    .addCommand(rulesValidateCommand())
    .addCommand(rulesImportCommand())
}
