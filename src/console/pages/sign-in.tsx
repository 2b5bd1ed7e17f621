import { useSignal } from '@preact/signals'
import type { Problem } from '../data/answer.ts'
import { useEffect } from 'preact/hooks'
import { route, urlOf } from '../data/route.ts'
import { readSignIn, signIn } from '../data/session.ts'
import { Field } from '../parts/form.tsx'
import { ProblemNote } from '../parts/problem.tsx'

export function SignIn({ why }: { why: Problem | undefined }) {
  const token = useSignal('')
  const problem = useSignal(why)
  const isBusy = useSignal(false)
  const provider = useSignal<string | null>(null)
  useEffect(() => {
    void readSignIn().then((found) => {
      provider.value = found.provider
    })
  }, [])
  const enter = async (): Promise<void> => {
    isBusy.value = true
    const answer = await signIn(token.value.trim())
    isBusy.value = false
    problem.value = answer.ok ? undefined : answer.problem
  }
  return (
    <main class="sign-in" id="main">
      <h1>Sluice</h1>
      <form
        onSubmit={(event) => {
          event.preventDefault()
          void enter()
        }}
      >
        <ProblemNote problem={problem.value} />
        {provider.value === null ? null : (
          <>
            <a class="button" href={`${provider.value}?${new URLSearchParams({ to: present() }).toString()}`}>
              Sign in with your organization
            </a>
            <p class="quiet">Or with a token:</p>
          </>
        )}
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
    </main>
  )
}

/** The page that is shown after the sign-in: the one whose address somebody has followed. */
function present(): string {
  const { page, params } = route.value
  return page === undefined ? '' : urlOf(page, Object.fromEntries(params))
}
