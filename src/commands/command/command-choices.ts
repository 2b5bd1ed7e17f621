// The values that options of commands take. They are in a file of their own, so that help and completion can
// show them without loading a role.

export { destinationStates } from '../../catalog/catalog.ts'
export { logKinds, logOutcomes } from '../../delivery-log/log-record.ts'
export { printFormats } from '../../topics/topic-print.ts'
