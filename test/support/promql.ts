/** Names of series in a query of PromQL. */
export function namesIn(expr: string): string[] {
  const bare = expr.replaceAll(/"[^"]*"/g, '""').replaceAll(/\b(by|on|ignoring|without) *\([^)]*\)/g, '')
  return [...new Set([...bare.matchAll(/\b(?:sluice|process|nodejs)[_:][\w:]*/g)].map(([name]) => name))]
}

/** The labels that each selector of a query asks for, with the name of its series. */
export function selectorsIn(expr: string): { name: string; labels: string[] }[] {
  return [...expr.matchAll(/([a-z][\w:]*)\{([^}]*)\}/g)].map(([, name = '', matchers = '']) => ({
    name,
    labels: [...matchers.matchAll(/(\w+)\s*(?:=~|!~|!=|=)\s*"/g)].map(([, label = '']) => label),
  }))
}
