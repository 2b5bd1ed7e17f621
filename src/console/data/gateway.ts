import { signal } from '@preact/signals'

/** Where the gateway is for those outside: a guess, which somebody may correct on any page that shows it. */
export const gatewayUrl = signal(`${location.protocol}//${location.hostname}:8080`)
