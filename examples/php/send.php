<?php
// Sends a message to the gateway, without packages:  SLUICE_URL=http://127.0.0.1:8080 WRITE_KEY=shop-write-key php send.php

$message = [
    'messageId' => bin2hex(random_bytes(16)), // keep it if you send the message again: Sluice then drops the repeat
    'userId' => 'u1',
    'event' => 'Order Completed',
    'properties' => ['orderId' => 'order-4711', 'total' => 30],
];
$login = base64_encode(getenv('WRITE_KEY') . ':');
$context = stream_context_create(['http' => [
    'method' => 'POST',
    'header' => ["Authorization: Basic $login", 'Content-Type: application/json'],
    'content' => json_encode($message),
    'timeout' => 10,
    'ignore_errors' => true,
]]);
$answer = file_get_contents(getenv('SLUICE_URL') . '/v1/track', false, $context);
// 200 means that Kafka has it. After 429, 5xx or no answer, send it again later.
if ($answer === false || !str_contains($http_response_header[0], ' 200')) {
    fwrite(STDERR, ($http_response_header[0] ?? 'no answer') . ": $answer\n");
    exit(1);
}
echo $message['messageId'], "\n";
