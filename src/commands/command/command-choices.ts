// The values that options of commands take. They are in a file of their own, so that help and completion can
// show them without loading a role.

export { logKinds, logOutcomes } from '../../delivery-log/log-record.ts'
export { printFormats } from '../../topics/topic-print.ts'

/** The states and conditions by which destinations are listed. */
export const listedStates = [
  'on',
  'off',
  'paused',
  'auto_paused',
  'failing',
  'gone',
  'paced',
  'waiting',
  'healthy',
  'unknown',
] as const
