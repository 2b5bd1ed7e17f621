/**
 * The values that options of commands take. They are here so that help and completion load no role for them.
 */
export { logKinds, logOutcomes } from '../delivery-log/log-record.ts'
export { printFormats } from '../kafka/topic-print.ts'
