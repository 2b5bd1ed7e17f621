{{- define "sluice.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 40 | trimSuffix "-" -}}
{{- end -}}

{{- define "sluice.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 40 | trimSuffix "-" -}}
{{- else if contains (include "sluice.name" .) .Release.Name -}}
{{- .Release.Name | trunc 40 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name (include "sluice.name" .) | trunc 40 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "sluice.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
app.kubernetes.io/version: {{ .Values.image.tag | default .Chart.AppVersion | trunc 63 | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{ include "sluice.selector" . }}
{{- with .Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- define "sluice.selector" -}}
app.kubernetes.io/name: {{ include "sluice.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{/* Kubernetes lets nobody change by what a Deployment or a StatefulSet knows its pods. `live`: the one that is there. */}}
{{- define "sluice.sameSelector" -}}
{{- $was := dig "spec" "selector" "matchLabels" "app.kubernetes.io/name" "" .live -}}
{{- if and $was (ne $was (include "sluice.name" .root)) -}}
{{- fail (printf "nameOverride (%s): %s knows its pods by the name %s, and Kubernetes lets nobody change that. Give fullnameOverride another name as well, or leave nameOverride as it was" (include "sluice.name" .root) .live.metadata.name $was) -}}
{{- end -}}
{{- end -}}

{{/* The volumes of a StatefulSet, in a line, by its values. */}}
{{- define "sluice.fixedState" -}}
{{- if .persistent -}}{{ printf "size %s, storage class %s" .size (.storageClass | default "of the cluster") }}{{- else -}}not persistent{{- end -}}
{{- end -}}

{{/* Kubernetes lets nobody change the volumes of a StatefulSet: (dict "path" "worker.state" "fixed" … "live" … "name" … "namespace" …) */}}
{{- define "sluice.sameState" -}}
{{- if ne .fixed (dig "metadata" "annotations" "sluice/fixed-state" .fixed .live) -}}
{{- fail (printf "%s (%s): Kubernetes lets nobody change the volumes of a StatefulSet, and %s has others (%s). Leave %s as it was, or take the StatefulSet away without its pods, which go on, and upgrade then:\n  kubectl delete statefulset %s --namespace %s --cascade=orphan\n" .path .fixed .name (index .live.metadata.annotations "sluice/fixed-state") .path .name .namespace) -}}
{{- end -}}
{{- end -}}

{{/* Where an autoscaler counts the pods, those that there are: without a number an upgrade would make it one. */}}
{{- define "sluice.replicas" -}}
{{- if not .values.autoscaling.enabled -}}
replicas: {{ .values.replicas }}
{{- else if .live -}}
replicas: {{ max (int .values.autoscaling.minReplicas) (int .live.spec.replicas) }}
{{- end -}}
{{- end -}}

{{- define "sluice.image" -}}
{{- if .Values.image.digest -}}
{{ .Values.image.repository }}@{{ .Values.image.digest }}
{{- else -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end -}}
{{- end -}}

{{- define "sluice.serviceAccountName" -}}
{{- if .Values.serviceAccount.create -}}
{{ include "sluice.fullname" . }}
{{- else -}}
{{ .Values.serviceAccount.name | default "default" }}
{{- end -}}
{{- end -}}

{{/* Seconds of a duration: 1500ms, 10s, 2m. */}}
{{- define "sluice.seconds" -}}
{{- if hasSuffix "ms" . -}}{{ divf (trimSuffix "ms" . | float64) 1000 | ceil | int }}
{{- else if hasSuffix "s" . -}}{{ trimSuffix "s" . | int }}
{{- else if hasSuffix "m" . -}}{{ mul (trimSuffix "m" . | int) 60 }}
{{- else -}}{{ fail (printf "%q is no duration: write 10s, or 2m" .) }}
{{- end -}}
{{- end -}}

{{/* Whole CPUs of a quantity, at least one. */}}
{{- define "sluice.wholeCpus" -}}
{{- $cpus := toString . -}}
{{- if hasSuffix "m" $cpus -}}{{ max 1 (div (trimSuffix "m" $cpus | int) 1000) }}
{{- else -}}{{ max 1 ($cpus | float64 | floor | int) }}
{{- end -}}
{{- end -}}

{{/* Processes of a worker: without a limit Node would count the CPUs of the node. */}}
{{- define "sluice.processes" -}}
{{- if .Values.worker.processes -}}
{{ .Values.worker.processes | int }}
{{- else -}}
{{- $resources := .Values.worker.resources | default dict -}}
{{- $cpu := dig "limits" "cpu" (dig "requests" "cpu" "1" $resources) $resources -}}
{{ min (include "sluice.wholeCpus" $cpu | int) (int .Values.topics.partitions) }}
{{- end -}}
{{- end -}}

{{/* More pods than this would have processes without a partition. */}}
{{- define "sluice.podCeiling" -}}
{{- $processes := include "sluice.processes" . | int -}}
{{ max 1 (div (sub (add (int .Values.topics.partitions) $processes) 1) $processes) }}
{{- end -}}

{{- define "sluice.maxReplicas" -}}
{{- $ceiling := include "sluice.podCeiling" . | int -}}
{{- $wanted := .Values.worker.autoscaling.maxReplicas | default $ceiling | int -}}
{{ max (int .Values.worker.autoscaling.minReplicas) (min $wanted $ceiling) }}
{{- end -}}

{{/* Who logs in to Kafka, and the file with the secret. */}}
{{- define "sluice.login" }}
- name: {{ .id }}
  valueFrom:
    secretKeyRef:
      name: {{ required "kafka.sasl.existingSecret is empty: name a Secret with the login" .of.existingSecret }}
      key: {{ .idKey }}
- name: {{ .secret }}
  value: /etc/sluice-kafka/login/{{ .secretKey }}
{{- end -}}

{{/* Variables of every process. Inline: a change of them is a change of the pods. */}}
{{- define "sluice.env" -}}
- name: SLUICE_KAFKA_BROKERS
  value: {{ join "," .Values.kafka.brokers | required "kafka.brokers is empty: name a few brokers, host:port each" | quote }}
- name: SLUICE_KAFKA_TOPIC_PREFIX
  value: {{ .Values.kafka.topicPrefix | quote }}
- name: SLUICE_KAFKA_SSL
  value: {{ .Values.kafka.ssl | quote }}
{{- with .Values.kafka.tls }}
{{- if .existingSecret }}
{{- range $variable, $key := dict "CA" .caKey "CERT" .certKey "KEY" .keyKey }}
{{- if $key }}
- name: SLUICE_KAFKA_{{ $variable }}_FILE
  value: /etc/sluice-kafka/tls/{{ $key }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}
{{- with .Values.kafka.sasl }}
{{- if ne .mechanism "none" }}
- name: SLUICE_KAFKA_SASL_MECHANISM
  value: {{ .mechanism }}
{{- end }}
{{- if eq .mechanism "oauthbearer" }}
{{- include "sluice.login" (dict "of" . "id" "SLUICE_KAFKA_OAUTH_CLIENT_ID" "idKey" .clientIdKey "secret" "SLUICE_KAFKA_OAUTH_CLIENT_SECRET_FILE" "secretKey" .clientSecretKey) }}
{{- else if not (has .mechanism (list "none" "aws-iam")) }}
{{- include "sluice.login" (dict "of" . "id" "SLUICE_KAFKA_SASL_USERNAME" "idKey" .usernameKey "secret" "SLUICE_KAFKA_SASL_PASSWORD_FILE" "secretKey" .passwordKey) }}
{{- end }}
{{- end }}
- name: SLUICE_TOPICS_PARTITIONS
  value: {{ .Values.topics.partitions | quote }}
- name: SLUICE_TOPICS_GENERATION
  value: {{ .Values.topics.generation | quote }}
- name: SLUICE_TOPICS_REPLICATION
  value: {{ .Values.topics.replication | quote }}
- name: SLUICE_TOPICS_MIN_INSYNC
  value: {{ .Values.topics.minInsync | quote }}
- name: SLUICE_SHUTDOWN_TIMEOUT
  value: {{ .Values.shutdownTimeout }}
{{- if .Values.trustedCertificates.existingConfigMap }}
- name: NODE_EXTRA_CA_CERTS
  value: /etc/ssl/sluice/{{ .Values.trustedCertificates.key }}
{{- end }}
{{- range $name, $value := .Values.settings }}
- name: {{ $name }}
  value: {{ $value | toString | quote }}
{{- end }}
{{- with .Values.extraEnv }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{/* Of those that read the catalog. */}}
{{- define "sluice.catalogEnv" -}}
- name: SLUICE_CATALOG_FILE
  value: /etc/sluice/catalog.yaml
{{- end -}}

{{/* Of those that hash users for the delivery log. */}}
{{- define "sluice.userKeyEnv" -}}
{{- with .Values.deliveryLog }}
{{- if and .existingSecret .userKeyKey }}
- name: SLUICE_ATTEMPTS_USER_KEY_FILE
  value: /etc/sluice-log/{{ .userKeyKey }}
{{- end }}
{{- end }}
{{- end -}}

{{/* Of those that answer for, or ask, the index of the delivery log. */}}
{{- define "sluice.indexTokenEnv" -}}
- name: SLUICE_INDEX_TOKEN_FILE
  value: /etc/sluice-log/{{ .Values.deliveryLog.tokenKey }}
{{- end -}}

{{- define "sluice.logSecretMount" -}}
- name: delivery-log
  mountPath: /etc/sluice-log
  readOnly: true
{{- end -}}

{{/* Those of its keys that a pod is to see: (dict "log" .Values.deliveryLog "keys" (list …)) */}}
{{- define "sluice.logSecretVolume" -}}
- name: delivery-log
  secret:
    secretName: {{ required "deliveryLog.existingSecret is empty: name a Secret with the token of the index" .log.existingSecret }}
    defaultMode: 0440
    items:
      {{- range .keys }}
      - { key: {{ . }}, path: {{ . }} }
      {{- end }}
{{- end -}}

{{- define "sluice.envFrom" -}}
{{- with .Values.catalog.variablesSecret }}
envFrom:
  - secretRef:
      name: {{ . }}
{{- end }}
{{- end -}}

{{/* What every pod sees, also that of the topics. */}}
{{- define "sluice.basicMounts" -}}
- name: tmp
  mountPath: /tmp
{{- if .Values.trustedCertificates.existingConfigMap }}
- name: certificates
  mountPath: /etc/ssl/sluice
  readOnly: true
{{- end }}
{{- if .Values.kafka.tls.existingSecret }}
- name: kafka-tls
  mountPath: /etc/sluice-kafka/tls
  readOnly: true
{{- end }}
{{- if .Values.kafka.sasl.existingSecret }}
- name: kafka-login
  mountPath: /etc/sluice-kafka/login
  readOnly: true
{{- end }}
{{- end -}}

{{- define "sluice.basicVolumes" -}}
- name: tmp
  emptyDir: {}
{{- with .Values.trustedCertificates.existingConfigMap }}
- name: certificates
  configMap:
    name: {{ . }}
{{- end }}
{{- with .Values.kafka.tls.existingSecret }}
- name: kafka-tls
  secret:
    secretName: {{ . }}
    defaultMode: 0440
{{- end }}
{{- with .Values.kafka.sasl.existingSecret }}
- name: kafka-login
  secret:
    secretName: {{ . }}
    defaultMode: 0440
{{- end }}
{{- end -}}

{{- define "sluice.volumeMounts" -}}
{{ include "sluice.basicMounts" . }}
- name: catalog
  mountPath: /etc/sluice
  readOnly: true
{{- end -}}

{{- define "sluice.volumes" -}}
{{ include "sluice.basicVolumes" . }}
- name: catalog
{{- if .Values.catalog.volume }}
  {{- toYaml .Values.catalog.volume | nindent 2 }}
{{- else }}
  configMap:
    name: {{ .Values.catalog.existingConfigMap | default (printf "%s-catalog" (include "sluice.fullname" .)) }}
{{- end }}
{{- end -}}

{{- define "sluice.probes" -}}
livenessProbe:
  httpGet:
    path: /livez
    port: metrics
  periodSeconds: 10
  # What asks waits no longer than 5 s for an answer of all processes.
  timeoutSeconds: 5
  failureThreshold: 6
readinessProbe:
  httpGet:
    path: /readyz
    port: metrics
  periodSeconds: 5
  timeoutSeconds: 5
  failureThreshold: 2
{{- end -}}

{{/* What all pods have. */}}
{{- define "sluice.pod" -}}
serviceAccountName: {{ include "sluice.serviceAccountName" . }}
{{- include "sluice.podBasics" . }}
{{- end -}}

{{- define "sluice.podBasics" }}
automountServiceAccountToken: false
# A Service named sluice would bring variables that begin with SLUICE_, which are read as settings.
enableServiceLinks: false
securityContext:
  {{- toYaml .Values.podSecurityContext | nindent 2 }}
{{- with .Values.imagePullSecrets }}
imagePullSecrets:
  {{- range . }}
  - name: {{ . }}
  {{- end }}
{{- end }}
{{- end -}}

{{/* Where the pods of a component may be: (dict "root" $ "component" "worker" "values" .Values.worker) */}}
{{- define "sluice.placement" -}}
topologySpreadConstraints:
{{- if .values.topologySpreadConstraints }}
  {{- toYaml .values.topologySpreadConstraints | nindent 2 }}
{{- else }}
{{- range $key := list "topology.kubernetes.io/zone" "kubernetes.io/hostname" }}
  - maxSkew: 1
    topologyKey: {{ $key }}
    whenUnsatisfiable: ScheduleAnyway
    labelSelector:
      matchLabels:
        {{- include "sluice.selector" $.root | nindent 8 }}
        app.kubernetes.io/component: {{ $.component }}
{{- end }}
{{- end }}
{{- with .values.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .values.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .values.affinity }}
affinity:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .values.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- end -}}

{{/* The topic prefix as a regular expression inside of a PromQL string. */}}
{{- define "sluice.prefixPattern" -}}
{{ .Values.kafka.topicPrefix | replace "." "\\\\." }}
{{- end -}}

{{/* Series of the worker pods. */}}
{{- define "sluice.ofWorkers" -}}
namespace="{{ .Release.Namespace }}",pod=~"{{ include "sluice.fullname" . }}-worker-[0-9]+"
{{- end -}}

{{/* A partition that moves is told by two pods for a moment, and counts once. */}}
{{- define "sluice.lagQuery" -}}
sum(max by (topic, partition) (sluice_consumer_lag_records{ {{- include "sluice.ofWorkers" . -}} ,topic=~"{{ include "sluice.prefixPattern" . }}(events|(g[0-9]+\\.)?replays)"}))
{{- end -}}

{{/*
Cores: those in use, and those that working off the lag takes beside, at what a record costs now. Where records wait and none are taken, it
says nothing, and the number of pods stays: more of them don't help against a Kafka or a proxy that is away.
*/}}
{{- define "sluice.workQuery" -}}
{{- $cores := printf "sum(rate(process_cpu_seconds_total{%s}[2m]))" (include "sluice.ofWorkers" .) -}}
{{- $taken := printf "sum(rate(sluice_records_total{%s,topic=~\"events|replays\"}[2m]))" (include "sluice.ofWorkers" .) -}}
{{- $lag := include "sluice.lagQuery" . -}}
{{ $cores }} * (1 + {{ $lag }} / ({{ .Values.worker.autoscaling.drainSeconds }} * ({{ $taken }} > 0))) or ({{ $cores }} and {{ $lag }} == 0)
{{- end -}}

{{/* Requests in flight, in pods that have as many as they may. */}}
{{- define "sluice.requestsQuery" -}}
sum(avg_over_time(sluice_deliveries_in_flight{ {{- include "sluice.ofWorkers" . -}} }[2m])) / avg(sluice_deliveries_in_flight_limit{ {{- include "sluice.ofWorkers" . -}} })
{{- end -}}

{{- define "sluice.overdueQuery" -}}
clamp_min(max(time() - sluice_oldest_due_timestamp_seconds{ {{- include "sluice.ofWorkers" . -}} }), 0) or vector(0)
{{- end -}}

{{/* What pods are asked for by: of each the query, and how much of it one pod is given. */}}
{{- define "sluice.triggers" -}}
{{- $share := divf .Values.worker.autoscaling.targetUtilization 100 -}}
- name: work
  series: sluice_scaling_work_cores
  query: {{ include "sluice.workQuery" . | quote }}
  perPod: {{ mulf $share (include "sluice.processes" . | int) | quote }}
- name: requests
  series: sluice_scaling_requests_pods
  query: {{ include "sluice.requestsQuery" . | quote }}
  perPod: {{ $share | quote }}
- name: overdue
  series: sluice_scaling_overdue_seconds
  query: {{ include "sluice.overdueQuery" . | quote }}
  perPod: {{ .Values.worker.autoscaling.overdueSecondsPerPod | quote }}
{{- end -}}

{{/* How the number of worker pods may change. */}}
{{- define "sluice.scalingBehavior" -}}
scaleUp:
  stabilizationWindowSeconds: {{ .scaleUp.stabilizationWindowSeconds }}
  selectPolicy: Max
  policies:
    - type: Percent
      value: {{ .scaleUp.percentPerMinute }}
      periodSeconds: 60
    - type: Pods
      value: 2
      periodSeconds: 60
scaleDown:
  stabilizationWindowSeconds: {{ .scaleDown.stabilizationWindowSeconds }}
  policies:
    - type: Pods
      value: 1
      periodSeconds: {{ .scaleDown.secondsPerPod }}
{{- end -}}
