import { Command } from 'commander'
import { rulesValidateCommand } from './rules-validate.js'

export function rulesCommand(): Command {
  return new Command('rules').description('Work with rule documents.').addCommand(rulesValidateCommand())
}
