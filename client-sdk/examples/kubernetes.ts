// A pod without a secret: the token that the kubelet mounts and rotates is the client's assertion
// (RFC 7523 §2.2).
//   ISSUER=https://as.example CLIENT_ID=… API=https://as.example/api/me node kubernetes.ts
import { discoverClient } from '@tollgate/oauth2-client/discovery';
import { defaultServiceAccountTokenPath, kubernetesServiceAccount } from '@tollgate/oauth2-client/kubernetes';

const { ISSUER = '', CLIENT_ID = '', API = '', TOKEN_FILE = defaultServiceAccountTokenPath } = process.env;

const client = await discoverClient(ISSUER, {
  clientId: CLIENT_ID,
  allowedOrigins: [API],
  clientAuth: kubernetesServiceAccount({ path: TOKEN_FILE }),
});
const token = await client.clientCredentials.getToken();
const { parsed } = await token.get<{ client_id: string }>(API);
console.log(parsed.client_id);
