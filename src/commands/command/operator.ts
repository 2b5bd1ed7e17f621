import { hostname, userInfo } from 'node:os'

/** Returns the name of the user for the audit trail. */
export function whoIsThis(): string {
  try {
    return `${userInfo().username}@${hostname()}`
  } catch {
    // The system has no user name for the user id. This is so in many containers.
    return hostname()
  }
}
