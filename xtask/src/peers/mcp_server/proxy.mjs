// Passes requests on to a server, with a token. Its address in Host and Origin becomes that of the
// server; any other is passed on as it is.
// node proxy.mjs SERVER TOKEN
import http from "node:http";

const server = new URL(process.argv[2]);
const proxy = http.createServer((request, answer) => {
  const own = request.headers.host;
  const headers = { ...request.headers, authorization: `Bearer ${process.argv[3]}` };
  if (new RegExp(`:${proxy.address().port}$`).test(own ?? "")) {
    headers.host = server.host;
    if (headers.origin) headers.origin = headers.origin.replace(own, server.host);
  }
  const { method, url: path } = request;
  const passed = http.request({ host: server.hostname, port: server.port, method, path, headers }, (got) => {
    answer.writeHead(got.statusCode, got.headers);
    got.pipe(answer);
  });
  passed.on("error", () => answer.destroy());
  answer.on("close", () => passed.destroy());
  request.pipe(passed);
});
proxy.listen(0, "localhost", () => {
  console.log(JSON.stringify({ url: `http://localhost:${proxy.address().port}` }));
});
