{{/* Renders the matchers of the series that the pods of this release report. */}}
{{- define "sluice.ofRelease" -}}
{{- if .Values.metrics.prometheusRule.seriesMatchers -}}
{{ .Values.metrics.prometheusRule.seriesMatchers }}
{{- else -}}
namespace="{{ .Release.Namespace }}",pod=~"{{ include "sluice.fullname" . }}-(worker|gateway|admin|log)-.+"
{{- end -}}
{{- end -}}

{{/*
Limits a query to this release: (dict "root" . "expr" …). Series that pods report (`sluice_…`) get the matchers of the pods, and recorded series
(`sluice:…`) get the label `release`.
*/}}
{{- define "sluice.queryOfRelease" -}}
{{- $query := regexReplaceAll `\b(sluice_[a-z0-9_]+)` .expr "${1}{@told@}" -}}
{{- $query = regexReplaceAll `\b(sluice:[a-z0-9_:]+)` $query "${1}{@recorded@}" -}}
{{- $query = $query | replace "@told@}{" "@told@," | replace "@recorded@}{" "@recorded@," -}}
{{ $query | replace "@recorded@" (printf "release=%q" .root.Release.Name) | replace "@told@" (include "sluice.ofRelease" .root) }}
{{- end -}}

{{/*
Renders the groups of files/rules for this release alone, because Prometheus may scrape other releases in this namespace and in others.
The values decide which alerts there are. Those in `disabled` are left out. SluiceNoGateway and the alerts about the gateway's objective are
left out if the gateway isn't enabled.
The chart knows which roles must run. So SluiceNoWorker and SluiceNoGateway also fire if Prometheus has never seen a worker or a gateway.
*/}}
{{- define "sluice.ruleGroups" -}}
{{- $root := . -}}
{{- $values := .Values.metrics.prometheusRule -}}
{{- $known := list -}}
{{- range $file, $_ := .Files.Glob "files/rules/*.yaml" }}
{{- range $group := ($root.Files.Get $file | fromYaml).groups }}
{{- $rules := list -}}
{{- range $rule := $group.rules }}
{{- $alert := get $rule "alert" -}}
{{- $known = append $known $alert -}}
{{- $isOfGateway := or (eq $alert "SluiceNoGateway") (hasPrefix "SluiceGatewaySlo" $alert) -}}
{{- $isWanted := and (not (and $alert (has $alert $values.disabled))) (or (not $isOfGateway) $root.Values.gateway.enabled) -}}
{{- if $isWanted }}
{{- $expr := eq $alert "SluiceNoGateway" | ternary `absent(sluice_build_info{role="gateway"})` $rule.expr -}}
{{- if eq $alert "SluiceNoWorker" }}{{ $expr = printf "%sor on () 0 * absent(sluice_build_info{role=\"worker\"})" $expr }}{{ end -}}
{{- $_ := set $rule "expr" (include "sluice.queryOfRelease" (dict "root" $root "expr" $expr)) -}}
{{- $_ := set $rule "labels" (merge (dict "release" $root.Release.Name) (get $rule "labels" | default dict)) -}}
{{- if and $alert $values.runbookBaseUrl }}
{{- $_ := set $rule.annotations "runbook_url" (printf "%s/%s.md" (trimSuffix "/" $values.runbookBaseUrl) (trimPrefix "sluice runbook " $rule.annotations.runbook)) -}}
{{- end }}
{{- /* Queries in annotations are limited too. They are in texts with double quotes, so the matcher has single quotes. */ -}}
{{- range $name, $text := get $rule "annotations" | default dict }}
{{- $_ := set $rule.annotations $name (regexReplaceAll `\b(sluice:[a-z0-9_:]+){` $text (printf "${1}{release='%s'," $root.Release.Name)) -}}
{{- end }}
{{- $rules = append $rules $rule -}}
{{- end }}
{{- end }}
{{- if $rules }}
{{ list (set $group "rules" $rules) | toYaml }}
{{- end }}
{{- end }}
{{- end }}
{{- range $values.disabled }}
{{- if not (has . $known) }}
{{- fail (printf "metrics.prometheusRule.disabled: there is no alert %s" .) }}
{{- end }}
{{- end }}
{{- end -}}
