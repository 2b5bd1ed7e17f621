import { useSignal } from '@preact/signals'
import type { Problem } from '../data/answer.ts'
import { signIn } from '../data/session.ts'
import { Field } from '../parts/form.tsx'
import { ProblemNote } from '../parts/problem.tsx'

export function SignIn({ why }: { why: Problem | undefined }) {
  const token = useSignal('')
  const problem = useSignal(why)
  const isBusy = useSignal(false)
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
