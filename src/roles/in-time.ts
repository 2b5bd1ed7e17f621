import { StartError } from './start-error.ts'

/** Awaits `work`; rejects with `complaint()` when it takes longer than `timeoutMs`. It then goes on unobserved. */
export async function inTime<T>(work: Promise<T>, timeoutMs: number, complaint: () => string): Promise<T> {
  let timer: NodeJS.Timeout | undefined
  const tooLate = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => reject(new StartError(complaint())), timeoutMs)
  })
  try {
    return await Promise.race([work, tooLate])
  } finally {
    clearTimeout(timer)
  }
}
