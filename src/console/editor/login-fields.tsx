import { useState } from 'preact/hooks'
import { Choice, Field } from '../parts/form.tsx'
import { type DraftHook, draftHookOf, type LoginKind } from './draft-hook.ts'
import { SecretField } from './secret-field.tsx'

type Props = {
  hook: DraftHook
  set: (change: Partial<DraftHook>) => void
  /** What tells the fields of several URLs apart. */
  suffix: string
}

const logins: readonly { readonly value: LoginKind; readonly name: string }[] = [
  { value: 'none', name: 'None: only its headers' },
  { value: 'basic', name: 'Basic: user name and password' },
  { value: 'oauth2', name: 'OAuth 2: a token by client credentials' },
]
const clientAuths = [
  { value: 'basic', name: 'In the header' },
  { value: 'post', name: 'In the form' },
] as const

/** How requests to a URL log in, and what they trust, as docs/logins.md explains it. */
export function LoginFields(props: Props) {
  const { hook, set, suffix } = props
  const [isOpen] = useState(hook.login !== 'none' || hook.certificate !== '' || hook.ca !== '')
  return (
    <details open={isOpen}>
      <summary>Login and certificates</summary>
      <Choice
        label={`Login${suffix}`}
        value={hook.login}
        options={logins}
        onChange={(login) => set({ login })}
      />
      {hook.login === 'basic' ? <BasicFields {...props} /> : null}
      {hook.login === 'oauth2' ? <OAuthFields {...props} /> : null}
      <TlsFields {...props} />
    </details>
  )
}

function BasicFields({ hook, set, suffix }: Props) {
  const kept = draftHookOf(hook.rest)
  return (
    <>
      <SecretField
        label={`User name${suffix}`}
        value={hook.username}
        kept={kept.username}
        onInput={(username) => set({ username })}
        hint="An API key is often the user name of a login without a password."
      />
      <SecretField
        label={`Password${suffix}`}
        value={hook.password}
        kept={kept.password}
        onInput={(password) => set({ password })}
      />
    </>
  )
}

function OAuthFields({ hook, set, suffix }: Props) {
  return (
    <>
      <Field
        label={`Token endpoint${suffix}`}
        value={hook.tokenUrl}
        onInput={(tokenUrl) => set({ tokenUrl })}
        placeholder="https://login.example.com/oauth2/token"
        isMono
        hint="If its host changes, write the client secret again."
      />
      <Field
        label={`Client id${suffix}`}
        value={hook.clientId}
        onInput={(clientId) => set({ clientId })}
        isMono
      />
      <SecretField
        label={`Client secret${suffix}`}
        value={hook.clientSecret}
        kept={draftHookOf(hook.rest).clientSecret}
        onInput={(clientSecret) => set({ clientSecret })}
      />
      <Field
        label={`Scope${suffix}`}
        value={hook.scope}
        onInput={(scope) => set({ scope })}
        isMono
        hint="What the token is asked for. Empty: the default of the endpoint."
      />
      <Field
        label={`Audience${suffix}`}
        value={hook.audience}
        onInput={(audience) => set({ audience })}
        isMono
        hint="If the endpoint asks for it."
      />
      <Choice
        label={`The client names itself${suffix}`}
        value={hook.clientAuth}
        options={clientAuths}
        onChange={(clientAuth) => set({ clientAuth })}
      />
    </>
  )
}

function TlsFields({ hook, set, suffix }: Props) {
  const kept = draftHookOf(hook.rest)
  return (
    <>
      <SecretField
        label={`Client certificate${suffix}`}
        value={hook.certificate}
        kept={kept.certificate}
        onInput={(certificate) => set({ certificate })}
        rows={2}
        hint="PEM, and after it its intermediate certificates. It needs its key."
      />
      <SecretField
        label={`Key of the client certificate${suffix}`}
        value={hook.key}
        kept={kept.key}
        onInput={(key) => set({ key })}
        rows={2}
        hint="PEM, not encrypted."
      />
      <SecretField
        label={`Authorities that are trusted${suffix}`}
        value={hook.ca}
        kept={kept.ca}
        onInput={(ca) => set({ ca })}
        rows={2}
        hint="PEM. Empty: the public ones."
      />
    </>
  )
}
