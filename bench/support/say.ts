/** Prints a line of progress to standard error, because standard output is for the result. */
export function say(line: string): void {
  console.error(line)
}
