<?php
// A receiver of webhooks, without packages:  WEBHOOK_SECRET=change-me php -S 127.0.0.1:3000 receive.php

$body = file_get_contents('php://input');
$expected = hash_hmac('sha1', $body, getenv('WEBHOOK_SECRET'));
if (!hash_equals($expected, $_SERVER['HTTP_X_SIGNATURE'] ?? '')) {
    http_response_code(401);
    return;
}
$message = json_decode($body, true);
// In production: a table with a unique key in place of a file for each id.
$seen = sys_get_temp_dir() . '/seen-' . hash('sha256', $message['messageId']);
$isNew = @fopen($seen, 'x') !== false;
if ($isNew) {
    error_log("{$message['type']} {$message['messageId']}"); // in production: put it into a queue, and work there
}
http_response_code(200);
