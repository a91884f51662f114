using Workerd = import "/workerd/workerd.capnp";

const config :Workerd.Config = (
  services = [
    (name = "main", worker = .app),
    (name = "data", disk = (path = "data", writable = true)),
  ],
  sockets = [(name = "http", address = "127.0.0.1:8787", http = (), service = "main")],
);

const app :Workerd.Worker = (
  modules = [
    (name = "worker.js", esModule = embed "dist/worker.js"),
    (name = "index.html", text = embed "page/index.html"),
    (name = "main.js.txt", text = embed "dist/page/main.js"),
  ],
  compatibilityDate = "2026-11-01",
  durableObjectNamespaces = [(className = "Chats", uniqueKey = "chats", enableSql = true)],
  durableObjectStorage = (localDisk = "data"),
  bindings = [
    (name = "CHATS", durableObjectNamespace = "Chats"),
    (name = "COUNTERSIGN_SECRET", fromEnvironment = "COUNTERSIGN_SECRET"),
  ],
);
