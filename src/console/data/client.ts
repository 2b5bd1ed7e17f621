import { createAdminClient } from '../../../clients/admin/client.js'

/**
 * The script is in the folder `console` of the API, whatever the prefix. The cookie of the session goes
 * along.
 */
export const admin = createAdminClient({ baseUrl: new URL('..', import.meta.url).href })
