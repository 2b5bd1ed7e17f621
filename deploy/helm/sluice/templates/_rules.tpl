{{/* Series that the pods of this release tell. */}}
{{- define "sluice.ofRelease" -}}
{{- if .Values.metrics.prometheusRule.seriesMatchers -}}
{{ .Values.metrics.prometheusRule.seriesMatchers }}
{{- else -}}
namespace="{{ .Release.Namespace }}",pod=~"{{ include "sluice.fullname" . }}-(worker|gateway|admin|log)-.+"
{{- end -}}
{{- end -}}

{{/* A query about this release alone, of series that are told or recorded: (dict "root" . "expr" …) */}}
{{- define "sluice.queryOfRelease" -}}
{{- $query := regexReplaceAll `\b(sluice_[a-z0-9_]+)` .expr "${1}{@told@}" -}}
{{- $query = regexReplaceAll `\b(sluice:[a-z0-9_:]+)` $query "${1}{@recorded@}" -}}
{{- $query = $query | replace "@told@}{" "@told@," | replace "@recorded@}{" "@recorded@," -}}
{{ $query | replace "@recorded@" (printf "release=%q" .root.Release.Name) | replace "@told@" (include "sluice.ofRelease" .root) }}
{{- end -}}

{{/*
The groups of files/rules, for this release alone: Prometheus may scrape others, in other namespaces and in this one.
Which alerts it has depends on the values: those of `disabled` are left out, and SluiceNoGateway and those of the gateway's objective are
there where there is to be a gateway. A release always has workers, so nobody needs to have seen one to miss it.
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
{{- $_ := set $rule.annotations "runbook_url" (printf "%s/%s" (trimSuffix "/" $values.runbookBaseUrl) (base $rule.annotations.runbook)) -}}
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
