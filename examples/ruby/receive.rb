# A receiver of webhooks (gem install webrick):  WEBHOOK_SECRET=change-me PORT=3000 ruby receive.rb
require 'json'
require 'openssl'
require 'set'
require 'webrick'

SECRET = ENV.fetch('WEBHOOK_SECRET')
SEEN = Set.new # in production: a table with a unique key, because a restart forgets this
LOCK = Mutex.new
$stdout.sync = true

class Webhook < WEBrick::HTTPServlet::AbstractServlet
  def do_POST(request, response)
    expected = OpenSSL::HMAC.hexdigest('SHA1', SECRET, request.body)
    return response.status = 401 unless OpenSSL.secure_compare(expected, request['X-Signature'].to_s)

    message = JSON.parse(request.body)
    is_new = LOCK.synchronize { SEEN.add?(message['messageId']) }
    puts "#{message['type']} #{message['messageId']}" if is_new # in production: put it into a queue, and work there
    response.status = 200
  end
end

server = WEBrick::HTTPServer.new(BindAddress: '127.0.0.1', Port: ENV.fetch('PORT', '3000').to_i, AccessLog: [])
server.mount '/', Webhook
trap('TERM') { server.shutdown }
server.start
