/** Progress goes to standard error: standard output is for the result. */
export function say(line: string): void {
  console.error(line)
}
