/** A small chart of requests by time: failures on top of successes. Its title says the sums. */
export function Spark({ succeeded, failed }: { succeeded: readonly number[]; failed: readonly number[] }) {
  const most = Math.max(1, ...succeeded.map((value, at) => value + (failed[at] ?? 0)))
  const good = sum(succeeded)
  const bad = sum(failed)
  const width = 4
  const height = 20
  const text = `${good.toLocaleString('en')} accepted, ${bad.toLocaleString('en')} failed in the last 24 hours`
  return (
    <svg
      class="spark"
      viewBox={`0 0 ${succeeded.length * width} ${height}`}
      preserveAspectRatio="none"
      role="img"
      aria-label={text}
    >
      <title>{text}</title>
      {succeeded.map((value, at) => {
        const lost = failed[at] ?? 0
        if (value + lost === 0) return null
        const badHeight = lost === 0 ? 0 : Math.max(1.5, (lost / most) * height)
        const goodHeight =
          value === 0 ? 0 : Math.max(1, Math.min((value / most) * height, height - badHeight))
        const x = at * width
        return (
          <g key={at}>
            <rect class="good" x={x} y={height - goodHeight} width={width - 1} height={goodHeight} />
            <rect
              class="bad"
              x={x}
              y={height - goodHeight - badHeight}
              width={width - 1}
              height={badHeight}
            />
          </g>
        )
      })}
    </svg>
  )
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0)
}
