# Sends a message to the gateway, without gems:  SLUICE_URL=http://127.0.0.1:8080 WRITE_KEY=shop-write-key ruby send.rb
require 'json'
require 'net/http'
require 'securerandom'

message = {
  messageId: SecureRandom.uuid, # keep it if you send the message again: Sluice then drops the repeat
  userId: 'u1',
  event: 'Order Completed',
  properties: { orderId: 'order-4711', total: 30 }
}
uri = URI("#{ENV.fetch('SLUICE_URL')}/v1/track")
request = Net::HTTP::Post.new(uri, 'Content-Type' => 'application/json')
request.basic_auth(ENV.fetch('WRITE_KEY'), '')
request.body = JSON.generate(message)
response = Net::HTTP.start(uri.host, uri.port, use_ssl: uri.scheme == 'https') { |http| http.request(request) }
# 200 means that Kafka has it. After 429, 5xx or no answer, send it again later.
abort "the gateway answers #{response.code}: #{response.body}" unless response.is_a?(Net::HTTPOK)
puts message[:messageId]
