// A pod without a secret: the token that the kubelet mounts and renews is the client's assertion (RFC 7523 §2.2).
//   SITE=https://as.example CLIENT_ID=… API=https://as.example/api/me node kubernetes.ts
import { Client } from '@tollgate/oauth2-client';
import { defaultServiceAccountTokenPath, kubernetesServiceAccount } from '@tollgate/oauth2-client/kubernetes';

const { SITE = '', CLIENT_ID = '', API = '', TOKEN_FILE = defaultServiceAccountTokenPath } = process.env;

const client = new Client({
  clientId: CLIENT_ID,
  site: SITE,
  clientAuth: kubernetesServiceAccount({ path: TOKEN_FILE }),
});
const token = await client.clientCredentials.getToken();
const { parsed } = await token.get<{ client_id: string }>(API);
console.log(parsed.client_id);
