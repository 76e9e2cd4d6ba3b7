// An identity provider in a process of its own: answers at once, for the user that the code names.
// PORT is the port of loopback.
import { createServer } from 'node:http';
import { text } from 'node:stream/consumers';

createServer(async (request, response) => {
  const form = new URLSearchParams(await text(request));
  const bearer = request.headers.authorization?.replace('Bearer ', '');
  const body =
    request.method === 'POST'
      ? { access_token: form.get('code'), token_type: 'bearer' }
      : { id: bearer, handle: `user ${bearer}`, email: `${bearer}@example.com`, img_url: '' };
  response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(body));
}).listen(Number(process.env.PORT), '127.0.0.1');
