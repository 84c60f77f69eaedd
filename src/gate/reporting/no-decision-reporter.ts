/** Replaces `decision-reporter` in the build for edge runtimes, where no OpenTelemetry SDK for Node.js runs. */
import type { DecisionReporter } from './decision-reporter.js'

export const decisionReporter = (): DecisionReporter | undefined => undefined
