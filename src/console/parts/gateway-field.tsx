import { gatewayUrl } from '../data/gateway.ts'
import { Field } from './form.tsx'

/** Where the gateway is for those outside, for texts that are pasted elsewhere. */
export function GatewayField() {
  return (
    <Field
      label="URL of the gateway"
      value={gatewayUrl.value}
      isMono
      onInput={(value) => {
        gatewayUrl.value = value
      }}
    />
  )
}
