import { useSignal } from '@preact/signals'
import type { Problem } from '../data/answer.ts'
import { useEffect } from 'preact/hooks'
import { route, urlOf } from '../data/route.ts'
import { readSignIn, signIn } from '../data/session.ts'
import { Field } from '../parts/form.tsx'
import { ProblemNote } from '../parts/problem.tsx'

/** `isCustomer`: whoever was here last came by a link, so what only operators have comes last. */
export function SignIn({ why, isCustomer }: { why: Problem | undefined; isCustomer: boolean }) {
  const problem = useSignal(why)
  const provider = useSignal<string | null>(null)
  useEffect(() => {
    void readSignIn().then((found) => {
      provider.value = found.provider
    })
  }, [])
  const ways = (
    <>
      {provider.value === null ? null : (
        <>
          <a class="button" href={`${provider.value}?${new URLSearchParams({ to: present() }).toString()}`}>
            Sign in with your organization
          </a>
          <p class="quiet">Or with a token:</p>
        </>
      )}
      <TokenForm
        onAnswer={(next) => {
          problem.value = next
        }}
      />
    </>
  )
  return (
    <main class="sign-in" id="main">
      <h1>Sluice</h1>
      <ProblemNote problem={problem.value} />
      {isCustomer ? (
        <details>
          <summary>Sign in with a token</summary>
          {ways}
        </details>
      ) : (
        ways
      )}
    </main>
  )
}

function TokenForm({ onAnswer }: { onAnswer: (problem: Problem | undefined) => void }) {
  const token = useSignal('')
  const isBusy = useSignal(false)
  const enter = async (): Promise<void> => {
    isBusy.value = true
    const answer = await signIn(token.value.trim())
    isBusy.value = false
    onAnswer(answer.ok ? undefined : answer.problem)
  }
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault()
        void enter()
      }}
    >
      <Field
        label="Token"
        name="token"
        type="password"
        value={token.value}
        onInput={(value) => {
          token.value = value
        }}
        required
        autoFocus
        isMono
        hint={
          <>
            Make one with <code>sluice tokens create</code>, or ask whoever runs Sluice. On the machine of{' '}
            <code>sluice up</code>, follow the link that it prints.
          </>
        }
      />
      <button type="submit" data-tone="main" disabled={isBusy.value || token.value === ''}>
        Sign in
      </button>
    </form>
  )
}

/** The page that is shown after the sign-in: the one whose address somebody has followed. */
function present(): string {
  const { page, params } = route.value
  return page === undefined ? '' : urlOf(page, Object.fromEntries(params))
}
