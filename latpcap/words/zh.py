"""The Chinese catalogue, with the ids and named values of `en.py`. `words/__init__.py` documents the templates.

Words from tables and JSON (causes, families, options, methods) are not translated.
"""

from __future__ import annotations

_MTU = (
    "让 ICMP“需要分片”（IPv6：“包太大”）到达发送方，或按路径钳制 MSS（nft: tcp option maxseg size set rt mtu；iptables: "
    "TCPMSS --clamp-mss-to-pmtu），或降低网卡的 MTU。"
)
_STALLED = "查清服务器程序停下时在等什么（日志、线程栈、后端服务器）；客户端应有自己的超时并重试。"
_POOL = "增加工作进程（php-fpm: pm.max_children；gunicorn: --workers；更多线程或进程），缩短每次处理，或减少并发请求。"
_BUFFERED = (
    "为它关闭代理的缓冲（nginx: proxy_buffering off，或应答头 X-Accel-Buffering: no；Apache: flushpackets=on），"
    "也不要用会等待更多数据的压缩。"
)
"""Fixes that several sentences share."""

SENTENCES = {
    "sites_folders": ("私有地址出现在 {n} 个目录的抓包中，可能是不同的机器：各目录分开统计（--sites one 合并统计）"),
    "sites_captures": ("从握手看，{n} 个抓包中的同一私有地址是不同的机器：各抓包分开统计（--sites one 合并统计）"),
    "dns_dead": (
        "DNS：{n} 次解析为从不应答的域名服务器 {server} 等了 {span_ms}；之后改问 {other}，{other_ms} 得到应答（{name}）"
    ),
    "dns_dead.fix": (
        "把 {server} 从 resolv.conf 中去掉或修好它；在此之前用短超时（options timeout:1 attempts:2）或本机缓存解析器。"
    ),
    "frozen": (
        "{server} 在 {span_ms} 内没有作任何应答：{streams} 条连接上的 {n} 个请求先后到达，随后在 {ends_ms} 之内一起得到"
        "应答；其中最早的是 {name}（帧 {frame}）{times:|，这是 {times} 次这样的等待中最长的一次}"
    ),
    "frozen.fix": (
        "查明是什么让 {server} 的整个程序停住：若请求逐个处理，就是 {name} 本身；或垃圾回收、磁盘刷写、得不到处理器。"
    ),
    "stampede": (
        "{client} 同时向 {server} 请求同一内容 {n} 次，其间无人请求（{name}，第 {frame} 帧）：每次用了 {span_ms}（共 {times} 次这样的突发）"
    ),
    "stampede.fix": (
        "让其中一个为所有等待者完成工作：缓存过期时加锁或合并请求（proxy_cache_lock），或在过期前更新（stale-while-revalidate）；"
        "并降低该请求的开销。"
    ),
    "pool_before": (
        "{server} 同时只向 {behind} 转发 {workers} 个请求：{n} 个请求在它那里排队（每个在 {behind} 花 {each_ms}，最后一个等了 {most_ms}）"
    ),
    "pool_before.fix": (
        "提高到 {behind} 的连接上限（HAProxy：server 行的 maxconn；nginx：max_conns；客户端的连接池），在它旁边增加服务器，"
        "或缩短那里的每个请求：无论多少在等，{behind} 所花的时间不变。"
    ),
    "behind_session": (
        "{server}：{n} 个请求等了 {span_ms}（{name}，帧 {frame}），直到同一客户端的另一个完成（{other}，帧 {other_frame}；"
        "其后 {after_ms}），而其他客户端同时立即得到同样的内容"
    ),
    "behind_session.fix": (
        "让 {other} 尽早放开会话锁（PHP：长时间工作之前 session_write_close()；ASP.NET：EnableSessionState ReadOnly），"
        "或把会话放在可以并发读取的地方。"
    ),
    "broker_blocked": "{server} 阻塞了发布者（connection.blocked，帧 {frame}）：{n} 个请求等了 {span_ms}，直到它重新接收消息（{name}）",
    "broker_blocked.fix": (
        "消除代理 {server} 的告警（rabbitmqctl status：内存或磁盘）：排空队列，增加内存或磁盘，提高 vm_memory_high_watermark "
        "或 disk_free_limit；让发布者理会 connection.blocked。"
    ),
    "client_id_twice": (
        "{client} 和 {other} 用同一个客户端 ID {id} 登录 {server}：每次登录都结束了另一方的会话，共 {n} 次，"
        "会话中位时长 {lasted_ms}（帧 {frame}）；断开 {span_ms}"
    ),
    "client_id_twice.fix": "给 {client} 和 {other} 各自的客户端 ID：代理对每个 ID 只保留一个会话。",
    "session_idled": "{server} 关闭空闲 {idle_ms:s} 的连接：{client} 的 {n} 条，{span_ms} 后它打开下一条（帧 {frame}）",
    "session_idled.fix": (
        "让任一方比 {idle_ms:s} 更频繁地发送（WebSocket ping、keep-alive、心跳：每 {half_ms:s}），"
        "或提高 {server} 或其前面负载均衡器的空闲超时。"
    ),
    "reset_between": (
        "以 {who} 名义发出的 RST 结束了与 {other} 的 {n} 条连接（帧 {frame}），但 {who} 仍继续确认收到的数据："
        "是中间设备发出的，或 {who} 收到了地址未被转换回来的包（NAT）"
    ),
    "reset_between.fix": (
        "检查中间的 NAT、防火墙或负载均衡器：连接跟踪判为 invalid 的包应丢弃（ct state invalid drop）"
        "或照样转换（net.netfilter.nf_conntrack_tcp_be_liberal=1）。"
    ),
    "took_nothing_server": "{server} {n:|每次}有 {span_ms} 不接收数据：接收窗口为零（从帧 {frame} 起{still}），因为它的程序没有读取",
    "took_nothing_server.fix": (
        "查明 {server} 的程序当时在等什么：队列、磁盘、锁、垃圾回收、消息代理的内存或磁盘告警。更大的接收缓冲区只会推迟它。"
    ),
    "took_nothing_client": "{client} {n:|每次}有 {span_ms} 不接收 {server} 的数据：接收窗口为零（从帧 {frame} 起{still}），因为它的程序没有读取",
    "still_closed": "，直到结束",
    "took_nothing_client.fix": (
        "查明 {client} 的程序不读取时在做什么：两次读取之间的处理、满的队列或磁盘、调试器、暂停的播放器。更大的接收缓冲区只会推迟它。"
    ),
    "client_onward": "{server} 不应答 {client}：{other} 等待 {client} 期间，它到 {server} 的 {n} 条连接等了 {span_ms}，SYN 没有人应答",
    "client_onward.fix": (
        "开放到 {server} 的路径，或免去 {client} 继续之前在那里的查询（证书吊销：OCSP stapling、CRL；许可证或登录服务），"
        "或让它更早放弃。"
    ),
    "behind_one": (
        "{server}：{n} 个请求等待 {name}（帧 {frame}，{span_ms}），先后到达，却在它得到应答的 {ends_ms} 之内一起得到应答；"
        "其间其他请求照常得到应答"
    ),
    "behind_one.fix": (
        "查明 {name} 在 {server} 上运行时持有哪个锁：会话锁（PHP：长时间工作之前 session_write_close()）、行锁或表锁"
        "（缩短事务）、互斥锁。"
    ),
    "ftp_address": (
        "{server} 让客户端为数据连接到 {other}（PASV），那不是它自己的地址：那里无人应答，{n} 次传输等了 {span_ms}"
    ),
    "ftp_address.fix": (
        "让 {server} 给出客户端能到达的地址（vsftpd: pasv_address；ProFTPD: MasqueradeAddress），或用不含地址的 EPSV。"
    ),
    "ftp_port": "{server} 让客户端为数据连接到 {other}（被动模式）：那里无人应答，{n} 次传输等了 {span_ms}",
    "ftp_port.fix": (
        "在 {server} 前的防火墙上放行被动模式的端口（vsftpd: pasv_min_port、pasv_max_port；Linux: nf_conntrack_ftp）。"
    ),
    "dns_reverse": "{server} 向 {other} 反查其客户端地址的名字（{name}），{came}：{n} 个请求为此等了 {span_ms}",
    "dns_reverse.fix": (
        "在 {server} 上：修好或更换域名服务器 {other}，或不再反查客户端的名字（sshd: UseDNS no；"
        "MariaDB、MySQL: skip-name-resolve；Apache: HostnameLookups off）。"
    ),
    "reverse_never": "没有得到应答",
    "reverse_late": "应答来得很晚",
    "dns_lost": (
        "DNS：{n} 次解析等了 {span_ms}，因为发往 {server} 的询问或其应答丢失，解析器超时后才再问（{name} 的 {kind}）"
    ),
    "dns_lost.fix": "查清发往 {server} 的 UDP 在哪里丢失；在此之前用短超时（options timeout:1）或本机缓存解析器。",
    "dns_lost_pair": (
        "DNS：{n} 次解析为 {server} 丢失的 {kind} 应答等了 {span_ms}，而另一地址族的应答立即就到："
        "两者由同一套接字询问，解析器要等到超时（{name}）"
    ),
    "dns_lost_pair.fix": (
        "在 resolv.conf 中写 options single-request-reopen timeout:1（两个套接字、短超时），或用本机缓存解析器；"
        "查找丢弃第二个应答的防火墙或 NAT。"
    ),
    "dns_search": (
        "DNS：{n} 次解析多花了 {span_ms}，因为先试了搜索列表中 {needless} 个不存在的名字（NXDOMAIN；{name} 之前先试 {tried}）"
    ),
    "dns_search.fix": "减小 ndots（resolv.conf 的 options ndots:1，Kubernetes 的 dnsConfig），或在名字末尾写点。",
    "dns_slow": "DNS：{n} 次解析在域名服务器 {server} 花了 {span_ms}（{name} 的 {kind}）",
    "dns_slow.fix": "查清 {server} 在等什么（它的转发器、递归），或在它前面放缓存。",
    "dns_failed": "DNS：{n} 次解析在 {span_ms} 后以 {status} 失败，域名服务器 {server}（{name} 的 {kind}）",
    "dns_failed.fix": "查清 {server} 为何无法解析 {name}：它的转发器，或该区自己的服务器。",
    "dns_never": "DNS：{server} 对 {n} 次解析从未应答；客户端问了 {span_ms}（{name} 的 {kind}）",
    "dns_never.fix": "修好域名服务器 {server} 或到它的路，或把它从 resolv.conf 中去掉。",
    "mostly_other": "大部分不是 TCP：{other}；{rest}",
    "late_close": "服务器程序，它关闭连接太晚：这些应答以其 FIN 才结束（没有 Content-Length）",
    "late_close.fix": "发送 Content-Length 或用 chunked 编码，或在最后一个字节后立即关闭：没有长度，客户端只能等连接结束。",
    "pool_of_one": "{server} 一次只应答一个：同时到来的 {n} 个请求互相等待（每个 {each_ms}，最后一个等了 {most_ms}）",
    "pool_of_one.fix": _POOL,
    "pool_of_some": "{server} 一次应答 {workers} 个：同时到来的 {n} 个请求互相等待（每个 {each_ms}，最后一个等了 {most_ms}）",
    "pool_of_some.fix": _POOL,
    "at_a_rate": (
        "{server} 每 {each_ms} 才放出一个应答，不论在哪条连接上，而其他请求在等待：{n} 个请求等了 {span_ms} 才轮到，"
        "因为速率限制，或只有一个每次耗时相同的工作进程"
    ),
    "at_a_rate.fix": (
        "检查 {server} 的请求速率限制（nginx：带 burst 而无 nodelay 的 limit_req；HAProxy；API 网关），"
        "提高它，或降低请求频率；否则检查其唯一的工作进程。"
    ),
    "behind_other": (
        "{server} 一次只处理一个请求（或这些请求）：{n} 个请求等了 {span_ms}（{name}，第 {frame} 帧），"
        "直到另一个完成才得到应答（{client} 的 {other}，第 {other_frame} 帧）"
    ),
    "behind_other.fix": "让 {other} 更快，或给它自己的工作进程；增加进程或线程，使快的请求不必等它。",
    "transaction_lock": (
        "{server}：{n} 个请求为 {client} 的一个事务等了 {span_ms}（{name}，第 {frame} 帧）：该事务先开始（第 {other_frame} 帧），"
        "其 {other} 之后 {after_ms} 应答就来了：它持有的锁"
    ),
    "transaction_lock.fix": (
        "让 {client} 上的程序更早提交：BEGIN 与 COMMIT 之间不要做费时的事（lock_timeout、"
        "idle_in_transaction_session_timeout 可限制它）。"
    ),
    "transaction_pool": (
        "{server}：{n} 个请求在其连接池中等了 {span_ms}（{name}，第 {frame} 帧），直到 {client} 的一个事务结束才被转发"
        "（{other}；开始于第 {other_frame} 帧）"
    ),
    "transaction_pool.fix": (
        "更大的连接池（pgbouncer: default_pool_size），或为 {client} 单设一个，并缩短那里的事务；时间不是数据库本身花的。"
    ),
    "buffered_events": (
        "{server} 缓冲 {behind} 的事件流：第一个事件 {first_ms} 后就有，它却在 {held_ms} 之后才成批转发"
        "（{name}，帧 {frame}）"
    ),
    "buffered_events.fix": _BUFFERED,
    "buffered": (
        "{server} 收齐 {behind} 的应答才转发：应答在 {first_ms} 后开始，客户端在 {held_ms} 之后才得到第一个字节"
        "（{name}，帧 {frame}）"
    ),
    "buffered.fix": _BUFFERED,
    "proxy_queue": (
        "{server} 把 {n} 个请求扣留中位 {held_ms} 才转给 {behind}（最长的是 {name}，帧 {frame}）："
        "它每次最多发送 {limit} 个，每个 {behind_ms}，一个应答到达后才发下一个"
    ),
    "proxy_queue.fix": (
        "若 {behind} 能同时处理更多，提高 {server} 的上限（maxconn、连接池、工作进程数），或增加与 {behind} 相同的服务器："
        "请求在排队，没有程序在处理它们。"
    ),
    "tls_alert": "{server}：{of} 次 TLS 握手中 {n} 次失败：{side}发送了警报 {alert}（帧 {frame}）",
    "tls_alert.fix": "{hint}",
    "idle_drop_push": (
        "空闲 {idle_ms:s} 后，{server} 发给 {client} 的数据在 {span_ms} 内重发 {repeats} 次，从未被确认，"
        "而 {client} 在另一条连接上仍在：中间的防火墙、NAT 或负载均衡器悄悄丢弃了空闲连接"
    ),
    "idle_drop_push.fix": (
        "在空闲连接上更早发送数据（心跳、ping、SO_KEEPALIVE 与 net.ipv4.tcp_keepalive_time）："
        "路径上的空闲超时{least}最多 {idle_ms:s}{timer}。"
    ),
    "peer_gone": "{silent} 不再应答：{prober} 的 {repeats} 个保活探测在空闲 {idle_ms:s} 之后 {span_ms} 内毫无回应{until}",
    "peer_gone.fix": (
        "查清什么使另一端悄然消失（主机崩溃或断网，NAT 或防火墙忘记了连接）；更短的保活时间（TCP_KEEPIDLE、"
        "TCP_KEEPINTVL）能更早发现。"
    ),
    "probed_reset": "；之后它以 RST 关闭了连接",
    "probed_on": "",
    "client_of": "{server} 的客户端",
    "ended_client_fin": "{n} 条由客户端的 FIN 关闭",
    "ended_client_rst": "{n} 条由客户端的 RST 关闭",
    "ended_server_fin": "{n} 条由服务器的 FIN 关闭",
    "ended_server_rst": "{n} 条由服务器的 RST 关闭",
    "shook": "握手时路径往返时间为 {trip_ms}",
    "redirects": (
        "{server}：在应答 {name} 之前连续 {run} 次重定向：共花 {whole_ms}，其中 {connects} 次用新连接，"
        "每个请求和每条连接各一次 {trip_ms} 的往返"
    ),
    "redirects.fix": "直接链接到最后的地址，或一步重定向到那里；其间保持连接。",
    "closed_after": "，在 {wait_ms} 之后",
    "nameless": "一条消息",
    "refused_until": (
        "{server} 拒绝了 {of} 条连接中的 {n} 条（RST：那里还没有监听）：客户端再试，在首次尝试 {span_ms:s} 之后被接受（帧 {frame}）"
    ),
    "refused_until.fix": "等 {server} 监听之后再开始（就绪检查、启动顺序），或更早重试：尝试之间的停顿是客户端的。",
    "later_until": (
        "{server} 对 {of} 个请求中的 {n} 个应答 {status}，其一是 {name}（帧 {frame}）：客户端再次请求，在首次请求 {span_ms:s} 之后得到应答"
    ),
    "later_until.fix": (
        "查清 {server} 为何应答 {status}（过载、限速、它所依赖的），以及它发送的 Retry-After：客户端的停顿跟随它，或是自己的。"
    ),
    "stalled_answer": (
        "{server} 在应答 {name} 的中途停下（帧 {frame}）：{bytes} 字节之后 {span_ms} 内再无数据，直到{until}"
    ),
    "stalled_answers": (
        "{server} 在 {of} 个应答中的 {n} 个中途停下，其一是 {name}（帧 {frame}）：{bytes} 字节之后 {span_ms} 内再无数据，"
        "直到{until}"
    ),
    "stalled_answer.fix": _STALLED,
    "stalled_answers.fix": _STALLED,
    "path_mtu": (
        "带 {length} 字节数据的包从 {sender} 到不了 {receiver}，较小的可以（路径 MTU 黑洞）：在 {n} 条连接上它们被重发多达 "
        "{repeats} 次，历时 {span_ms}，从未得到确认"
    ),
    "path_mtu_in_vain": (
        "从 {sender} 到 {receiver} 的满长包从不到达此处，较小的可以（路径 MTU 黑洞）：{n} 条连接上缺 {length} 字节，"
        "历时 {span_ms}"
    ),
    "path_mtu_answer": (
        "{sender} 应答了 {name}（帧 {request_frame}），但应答没有任何部分到达 {receiver}：按其后续包的序列号（帧 {frame}）缺 "
        "{length} 字节，而小包可以到达：大包也许超过路径 MTU；{n} 条连接上如此，历时 {span_ms}"
    ),
    "path_mtu_perhaps": (
        "从 {sender} 到 {receiver} 带 {length} 字节数据的包在 {span_ms} 内被重发 {repeats} 次而从未确认，小包曾得到确认，"
        "接收方还活着：包长可能超过路径 MTU"
    ),
    "path_mtu_or_gone": (
        "从 {sender} 到 {receiver} 的带 {length} 字节数据的包在 {span_ms} 内重发 {repeats} 次，从未被确认，"
        "而小包曾被确认：它们大于路径 MTU，或 {receiver} 已不在"
    ),
    "path_mtu_or_gone.fix": (
        "用同样大小的包 ping（ping -M do -s 1400）：若小包通过而大包不通过，把 MSS 钳制到路径（nft: tcp option maxseg size "
        "set rt mtu），或让 ICMP 的 too big 消息到达发送方。"
    ),
    "path_mtu_all": (
        "{sender} 发给 {receiver} 的数据都没有通过：带 {length} 字节数据的包在 {span_ms} 内重发 {repeats} 次，从未被确认，"
        "而握手的小包通过了：它们可能大于路径 MTU"
    ),
    "path_mtu_all.fix": _MTU,
    "path_mtu_cut": (
        "带 {length} 字节数据的包从 {sender} 到不了 {receiver}（路径 MTU）：{span_ms} 后改以 {cut} 字节重发，才通过；"
        "共 {n} 条连接如此"
    ),
    "path_mtu_icmp": (
        "带 {length} 字节数据的包对 {sender} 到 {receiver} 的路径太大：ICMP 说了 {notices} 次（下一跳 MTU {mtu}），"
        "发送方仍照样重发，{span_ms} 内 {repeats} 次"
    ),
    "path_mtu_icmp_heeded": (
        "带 {length} 字节数据的包对 {sender} 到 {receiver} 的路径太大：ICMP 说了（下一跳 MTU {mtu}），{span_ms} 后改发较小的包"
    ),
    "path_mtu.fix": _MTU,
    "path_mtu_in_vain.fix": _MTU,
    "path_mtu_answer.fix": _MTU,
    "path_mtu_perhaps.fix": _MTU,
    "path_mtu_cut.fix": _MTU,
    "path_mtu_icmp_heeded.fix": _MTU,
    "path_mtu_icmp.fix": (
        "让 ICMP 报文到达发送方内核（本机防火墙、不转发它们的负载均衡器），或在路由器上把 MSS 钳制为 {mss}"
        "（tcp option maxseg size set rt mtu）。"
    ),
    "keepalive_race": (
        "{server} 关闭了 {n} 条已空闲 {idle_ms:s} 的连接，恰在下一个请求正在路上时（{name}，帧 {frame}）："
        "它的保活超时与客户端相撞"
    ),
    "keepalive_race.fix": (
        "让客户端比服务器更早放弃空闲连接（{idle_ms:s}{timer}），或把服务器的保活超时调到高于客户端；"
        "撞上关闭的请求可在新连接上重发。"
    ),
    "idle_reset": (
        "空闲 {idle_ms:s} 后，到 {server} 的 {n} 条连接在下一个请求时遇到 RST（{name}，帧 {frame}）："
        "对端或中间的均衡器、防火墙已忘记它们"
    ),
    "idle_reset.fix": (
        "在客户端更早关闭空闲连接，或在此之前发送 TCP 保活（net.ipv4.tcp_keepalive_time、SO_KEEPALIVE）："
        "途中的空闲超时{least}至多 {idle_ms:s}{timer}。"
    ),
    "idle_drop": (
        "空闲 {idle_ms:s} 后，到 {server} 的 {n} 条连接已死：客户端重发数据 {repeats} 次，{span_ms} 内没有确认，"
        "而新连接正常：中间的防火墙、NAT 或均衡器悄悄丢弃了空闲连接"
    ),
    "idle_drop.fix": (
        "在客户端更早关闭空闲连接，或在此之前发送 TCP 保活（net.ipv4.tcp_keepalive_time、SO_KEEPALIVE）："
        "途中的空闲超时{least}至多 {idle_ms:s}{timer}；TCP_USER_TIMEOUT 能结束对死连接的等待。"
    ),
    "alert_trust": "客户端不信任服务器的证书：把该 CA 交给客户端，或让服务器发送中间证书。",
    "alert_expired": "更新证书（或校正时钟）。",
    "alert_versions": "双方没有共同的协议版本或密码套件：允许一个双方都支持的（ssl_protocols、MinProtocol、客户端 TLS 版本）。",
    "alert_name": "请求该服务器提供的名字或协议（SNI、ALPN）。",
    "alert_client": "服务器要求一个它信任的客户端证书。",
    "alert_other": "发送警报一方的日志有更多说明。",
    "transfer_window": (
        "{end}：{what} {size}，{rate}，{took_ms:s}：{receiver}的接收窗口（{window}）在 {rtt_ms} 的往返时间下只容许这么多{would}"
    ),
    "transfer_window.fix": "把{receiver}的接收缓冲提高到 {needed} 以上：不设 SO_RCVBUF，或提高它和 net.ipv4.tcp_rmem。",
    "transfer_unscaled": (
        "{end}：{what} {size}，{rate}，{took_ms:s}：没有窗口缩放，{receiver}的接收窗口（{window}）在 {rtt_ms} 的往返时间下"
        "只容许这么多{would}"
    ),
    "transfer_unscaled.fix": (
        "两端都打开窗口缩放（net.ipv4.tcp_window_scaling=1），或找到从 SYN 中去掉该选项的中间设备；只加大缓冲无用。"
    ),
    "transfer_reader": "{end}：{what} {size}，{rate}，{took_ms:s}：{receiver}的程序读得太慢，接收窗口已满",
    "transfer_reader.fix": "让{receiver}的程序读得更快或每次读更多：更大的窗口或更快的线路都没有用。",
    "transfer_program": "{end}：{what} {size}，{rate}，{took_ms:s}：{sender}的程序在两次写之间停顿",
    "transfer_program.fix": "查清{sender}的程序在两次写之间等什么：路径和窗口都有余地。",
    "transfer_level": (
        "{end}：{what} {size}，{rate}，{took_ms:s}：在途数据从不超过 {flight}，每个 ACK 才放行下一批（往返 {loaded_ms}）："
        "{receiver}的接收窗口或{sender}的发送缓冲；含窗口缩放因子的握手不在此抓包中"
    ),
    "transfer_level.fix": (
        "增大{receiver}的接收缓冲（net.ipv4.tcp_rmem、SO_RCVBUF）和{sender}的发送缓冲（net.ipv4.tcp_wmem、SO_SNDBUF），"
        "或使用多条连接；在连接建立之前开始的抓包可知是哪一个。"
    ),
    "transfer_far": (
        "{end}：{what} {size}，{rate}，{took_ms:s}：窗口和路径都有余地时{sender}停顿：它的程序、限速或发送缓冲"
        "（在{sender}处抓包可知是哪个）"
    ),
    "transfer_buffer": (
        "{end}：{what} {size}，{rate}，{took_ms:s}：窗口和路径有余地，{sender}在途数据却不再增加："
        "可能是其发送缓冲（SO_SNDBUF、net.ipv4.tcp_wmem）"
    ),
    "transfer_pacing": (
        "{end}：{what} {size}，{rate}，{took_ms:s}：{sender}以均匀的间隔发送（pacing：SO_MAX_PACING_RATE、tc 或自己的限速）"
    ),
    "transfer_lost": "{end}：{what} {size}，{rate}，{took_ms:s}：{lost} 个报文段丢失并重发，{sender}每次丢失都减速",
    "transfer_lost.fix": "查清路径在哪里丢包（网线、无线、双工、限速器）：决定速率的是丢包，不是线路。",
    "transfer_marked": "{end}：{what} {size}，{rate}，{took_ms:s}：路径标记报文段（ECN），{sender}因此减速",
    "transfer_reordered": "{end}：{what} {size}，{rate}，{took_ms:s}：路径打乱报文段的顺序，{sender}把它当作丢失",
    "transfer_start": (
        "{end}：{what} {size} 花了 {took_ms}，{rate}：慢启动，从十个报文段开始，每个往返（{rtt_ms}）加倍"
    ),
    "transfer_start.fix": (
        "保持连接打开且“热”（net.ipv4.tcp_slow_start_after_idle=0），放得离{receiver}更近，或提高{sender}的初始窗口"
        "（ip route ... initcwnd）。"
    ),
    "transfer_line": (
        "{end}：{what} {size}，{rate}，{took_ms:s}：线路容不下更多；其间往返时间 {loaded_ms}，空闲时 {rtt_ms}"
    ),
    "transfer_line.fix": "线路已满：少发（压缩、缓存）或加大线路；在它前面用 fq_codel 或 CAKE 可使其他流量保持快速。",
    "transfer_bloat": (
        "{end}：{what} {size}，{rate}，{took_ms:s}，填满了线路及其前面的队列：其间往返时间 {loaded_ms}，空闲时 {rtt_ms}，"
        "使用该线路的其他流量也一样"
    ),
    "slow_in_queue": (
        "{server}：{of} 个请求中有 {n} 个慢，其中 {during} 个发生在该传输占满队列期间，它们也在那里等待；此时看似程序的时间未被证实"
    ),
    "transfer_bloat.fix": (
        "在线路起点管理队列（fq_codel、CAKE），或让{sender}以低于线路的速率发送：其他流量重新变快；传输本身已与线路一样快。"
    ),
    "transfer_line_or": "{end}：{what} {size}，{rate}，{took_ms:s}：报文段以均匀速率逐个到达：也许是线路，也许是{rival}",
    "transfer_http2": (
        "{end}：{what} {size}，{rate}，{took_ms:s}：{receiver}的 HTTP/2 窗口（{scope}，{window}）在 {rtt_ms} 的往返时间下"
        "不允许更快{would}"
    ),
    "transfer_http2.fix": (
        "把{receiver}的 HTTP/2 窗口提高到 {needed} 以上，流的（SETTINGS_INITIAL_WINDOW_SIZE）和连接的（流 0 的 "
        "WINDOW_UPDATE）。"
    ),
    "transfer_of_stream": "每个流",
    "transfer_of_connection": "连接",
    "queue_cost": (
        "对 {server} 的 {n} 个请求在 {end} 的{what}占满线路时用了 {loaded_ms}，在此前后为 {idle_ms}：它的队列使每个请求多等 "
        "{cost_ms}，共 {all_ms}"
    ),
    "queue_cost.fix": (
        "在线路起点管理队列（fq_codel、CAKE），让{sender}发送得比线路略慢，或只给这次传输 {window} 的窗口：它同样快，而其他请求"
        "不再等待。"
    ),
    "queue_cost_server": (
        "{server} 的 {n} 个应答在 {end} 的{what}占满线路时 {loaded_ms} 后才得到确认，在此前后为 {idle_ms}：它的队列使每个应答"
        "多等 {cost_ms}，共 {all_ms}"
    ),
    "queue_cost_server.fix": (
        "在线路起点管理队列（fq_codel、CAKE），让{sender}发送得比线路略慢，或只给这次传输 {window} 的窗口：它同样快，而其他应答"
        "不再等待。"
    ),
    "queue_cost_or": (
        "对 {server} 的 {n} 个请求在 {end} 的{what}占满线路时用了 {loaded_ms}，在此前后为 {idle_ms}：每个请求最多有 {cost_ms} "
        "是它的队列，其余不是"
    ),
    "rival_queue_beside": "相同主机之间另一次传输的队列",
    "transfer_would": "；有 {needed} 就可达到报文段相继到达的 {burst}",
    "transfer_or_pacing": "限速",
    "transfer_or_receiver_window": "接收窗口",
    "transfer_or_sender_program": "发送方的程序",
    "transfer_or_sender_buffer": "发送方的缓冲区",
    "transfer_or_line": "线路",
    "transfer_or_congestion": "路径上的丢失",
    "transfer_or_http2_window": "HTTP/2 的流量控制（没有密钥时 TLS 将其隐藏）",
    "transfer_rival_left": "这份抓包不能排除它",
    "one_error": "{server} 以错误应答：{status}",
    "clients": "其客户端",
    "until_end": "抓包结束",
    "until_client": "客户端放弃",
    "until_server": "它关闭连接",
    "timer_least": "超过 {longest_ms:s}、",
    "timer_like": "；这像{whose}",
    "timer_5": "Node 的 keepAliveTimeout、Apache 的 KeepAliveTimeout",
    "timer_10": "10 秒的保活超时",
    "timer_15": "15 秒的保活超时",
    "timer_60": "AWS ALB、HAProxy 或代理的 60 秒超时",
    "timer_65": "某些发行版中 nginx 的 keepalive_timeout",
    "timer_75": "nginx 的 keepalive_timeout",
    "timer_120": "IIS、Go 程序",
    "timer_240": "Azure 的负载均衡和 NAT",
    "timer_300": "防火墙或代理的 5 分钟",
    "timer_350": "AWS NLB 和 NAT 网关",
    "timer_600": "Google Cloud 的 10 分钟",
    "timer_900": "防火墙的 15 分钟",
    "timer_1800": "防火墙的 30 分钟",
    "timer_3600": "防火墙的一小时",
    "timer_7200": "内核的 tcp_keepalive_time",
    "timer_28800": "MySQL 的 wait_timeout",
    "timer_432000": "conntrack 的 5 天",
    "arp_late": "{what}：{address} 没有回答谁有它的地址：{client} 问了 {requests} 次，等了 {span_ms} 才能向那里发送",
    "arp_late.fix": (
        "查清 {address} 起初为何不应答：交换机端口尚未转发（生成树：portfast）、VLAN 错误、广播被丢弃、主机休眠。"
    ),
    "tunnel_checksum": (
        "到 {server} 的 {of} 条连接中 {n} 条因隧道中 {repeats} 个 SYN 等了 {span_ms}，其外层 UDP 校验和错误："
        "隧道另一端丢弃它们"
    ),
    "tunnel_checksum.fix": (
        "在隧道设备上关闭破坏它的校验和卸载（ethtool -K DEVICE tx off, tx-udp_tnl-csum-segmentation off）或更新驱动；"
        "除非网卡在抓包点之后才填写。"
    ),
    "family_dead": (
        "到 {server} 的 {family} 是黑洞：{n} 条连接为无人应答的 SYN 等了 {span_ms}，客户端才退到 {other_family}（{other}）"
    ),
    "family_dead.fix": (
        "修好 {family} 路由或丢弃它的防火墙，或把该地址从 DNS 去掉；在此之前让客户端优先用 {other_family}（gai.conf），"
        "或两者竞速（Happy Eyeballs）。"
    ),
    "address_dead": "{address} 不应答：到 {server} 的 {n} 条连接为无人应答的 SYN 等了 {span_ms}，客户端才试下一个地址（{other}）",
    "address_dead.fix": "把 {address} 从 DNS 去掉或修好它；让客户端更早试下一个地址（连接超时）。",
    "family_refused": (
        "{server} 拒绝了 {n} 条连接（RST；它不在 {family} 上监听）：客户端试了 {span_ms}，每条 {repeats} 个 SYN，"
        "才用 {other_family}（{other}）"
    ),
    "family_refused.fix": (
        "让服务器也在 {family} 上监听，或直接写 {other_family} 地址（用 127.0.0.1 代替 localhost）；"
        "或把 {family} 地址从 DNS 和 hosts 文件去掉。"
    ),
    "address_refused": (
        "{server} 拒绝了 {n} 条连接（RST；它不在那里监听）：客户端试了 {span_ms}，每条 {repeats} 个 SYN，才用 {other}"
    ),
    "address_refused.fix": "让服务器也在 {address} 上监听，或连接到它监听的地址。",
    "syn_other_address": (
        "到 {server} 的 {of} 条连接中 {n} 条的 SYN-ACK 来自另一地址 {other}，从未建立（最长 {longest_ms}）：应答没有被转换回来（NAT），客户端拒绝它"
    ),
    "syn_other_address.fix": (
        "让应答经过转换 SYN 的那个 NAT：同一条返回路由、该节点的 conntrack、对同主机或同子网流量做 masquerade（hairpin）。"
    ),
    "data_other_address": (
        "{server} 的一个应答中途停了 {span_ms}：其报文段来自另一地址 {other}，没有转换回来（NAT），客户端以 RST 回应"
    ),
    "data_other_address.fix": (
        "在做转换的节点上丢弃 conntrack 称为 invalid 的包（iptables -m conntrack --ctstate INVALID -j DROP），或设 "
        "nf_conntrack_tcp_be_liberal=1。"
    ),
    "syn_old_stamp": (
        "到 {server} 的 {of} 条连接中 {n} 条的 SYN 在 {span_ms} 内没有应答：其时间戳（TSval）早于 {client} 的其他 SYN，后者得到应答"
    ),
    "syn_old_stamp.fix": "在服务器上关闭 tcp_tw_recycle（Linux 4.12 之前）：在 NAT 后面它丢弃时间戳较旧的 SYN（PAWS）。",
    "syn_challenged": (
        "到 {server} 的 {of} 条连接中 {n} 条花了 {span_ms} 才建立：SYN 遇到同端口的旧连接（TIME_WAIT），得到 challenge ACK，"
        "被复位后重发"
    ),
    "syn_challenged.fix": (
        "重用连接而不是端口：保持连接，或加宽 ip_local_port_range，使端口不会在服务器仍有旧连接时再次出现。"
    ),
    "syn_ecn": (
        "到 {server} 的 {of} 条连接中 {n} 条花了 {span_ms} 才建立：提供 ECN（ECE、CWR）的 SYN 被丢弃，没有它的得到应答"
    ),
    "syn_ecn.fix": "找到丢弃带 ECN 的 SYN 的防火墙并放行；在此之前客户端设 net.ipv4.tcp_ecn=2。",
    "syn_queue_full": (
        "到 {server} 的 {of} 条连接中 {n} 条花了 {span_ms} 才建立：SYN 到达了服务器主机，重发之前没有应答；其 accept 队列已满"
    ),
    "syn_queue_full.fix": "让服务器更早 accept，或提高其 listen backlog 和 net.core.somaxconn（nstat: ListenOverflows 计数）。",
    "greeting_late": "{server} 让 {n} 条连接为其问候等了 {span_ms}：它在这里先说话，握手之后却一直沉默",
    "greeting_late.fix": (
        "查看对客户端地址的反向解析（MySQL: skip-name-resolve；SSH: UseDNS no；邮件和 FTP：反向解析、ident），"
        "或配置的问候延迟。"
    ),
    "greeting_partial": (
        "{server} 让 {n} 条连接为其问候的余下部分等了 {span_ms}：第一行立即到达，最后一行这么晚才来，客户端此后才说话"
    ),
    "greeting_partial.fix": (
        "查看 {server} 放行客户端之前在等什么：反垃圾邮件的问候延迟（postscreen_greet_wait、tarpit：把客户端加入其名单），"
        "或对客户端地址的查询。"
    ),
    "greeting_reverse": ("{server} 让 {n} 条连接为其问候等了 {span_ms}：其间它向 {other} 反查客户端地址的名字，{came}"),
    "greeting_reverse.fix": (
        "在 {server} 上：修好或更换域名服务器 {other}，或不反查客户端的名字（sshd: UseDNS no；MariaDB、MySQL: "
        "skip-name-resolve；邮件和 FTP：关闭反向解析）。"
    ),
    "datagram_late": "{protocol}：{n} 个请求为 {server} 的应答等了 {span_ms}",
    "datagram_late.fix": (
        "查明 {server} 应答之前在等什么：自己的工作、检查，或其后面的服务器；如果客户端不得不重发，则查路径在哪里丢弃请求。"
    ),
    "datagram_failed": "{protocol}：{server} 对 {of} 个请求中的 {n} 个以 {status} 应答（请求在帧 {frame}），此后没有别的结果",
    "datagram_failed.fix": "在 {server} 上查明为何以 {status} 应答：其日志有原因；应答本身只用了一个往返。",
    "datagram_dead": (
        "{protocol}：{server} 从未应答：{client} 发了 {repeats} 个请求，等了 {span_ms}，其间什么也没做{then}"
    ),
    "datagram_dead.fix": "修好 {server} 或其前面的防火墙，或把它从客户端的列表中去掉；在此之前用更短的超时，或不要等它。",
    "datagram_then": "；随后发给 {other}，得到了应答",
    "dhcp_checked": (
        "DHCP：{server} 用了 {span_ms} 才提供地址：它先查看 {address} 是否在用（{checks} 个无人应答的 ARP 请求）"
    ),
    "dhcp_checked.fix": (
        "接受它，或在地址不会重复分配的地方关闭检查（dnsmasq: no-ping；ISC dhcpd: ping-check false；Windows: 冲突检测 0）。"
    ),
    "dhcp_never": "DHCP：无人应答：一个没有地址的客户端在 {span_ms} 内请求了 {repeats} 次",
    "dhcp_never.fix": (
        "查看此 VLAN 上是否有 DHCP 服务器或中继（ip helper-address），是否还有空闲地址、是否应答该客户端；"
        "等待生成树（portfast）或 802.1X 的交换机端口会丢弃最初的请求。"
    ),
    "ftp_active": (
        "{other} 为数据连接其客户端（FTP 主动模式：{server}），那里无人应答：{n} 次传输等了 {span_ms}，每次 {repeats} 个 SYN"
    ),
    "ftp_active.fix": "使用被动模式，或让 {address} 前面的防火墙和 NAT 放行来自 {other_address}（端口 20）的连接。",
    "callback_dead": "{other} 反过来连接其客户端（{server}），那里无人应答其 SYN：客户端为此等了 {span_ms}，共 {n} 次",
    "callback_dead.fix": (
        "对 {other_address} 发往 {server} 的连接不要丢弃，而是拒绝或放行（端口 113：ident，可在服务器上关闭）。"
    ),
    "onward_dead": (
        "{address} 不应答 {client}：客户端等待 {other} 时，它到 {server} 的 {n} 条连接为无人应答的 SYN 等了 {span_ms}"
    ),
    "onward_dead.fix": "修好 {address}，或把它从 DNS 或 {client} 的配置中去掉；让 {client} 更早放弃（连接超时）。",
    "connect_dead": (
        "{server} 不应答：{client} 为无人应答的 SYN 等了 {span_ms}，共 {n} 次，其间什么也没做；它是由 {other} 的应答引到那里的"
    ),
    "connect_dead.fix": (
        "修好 {address} 或其前面的防火墙，或把它从引向那里的东西（{other} 的 referral 或重定向、DNS、配置的地址）中去掉；"
        "在此之前用更短的连接超时。"
    ),
    "tls_certificates": (
        "与 {server} 的 {of} 次 TLS 握手中 {n} 次多花了 {span_ms}，即多一个往返：服务器的证书超过其初始拥塞窗口一次能发出的量"
    ),
    "tls_certificates.fix": (
        "更短的证书链（不含根证书，用 ECDSA 代替 RSA）、证书压缩、会话恢复，或在服务器路由上设更大的 initcwnd；并保持连接。"
    ),
    "tls_each": (
        "到 {server} 的 {n} 个请求每个都新开 TLS 连接：每次握手花 {span_ms}，即数个 {trip_ms} 的往返，保持的连接只需一个"
    ),
    "tls_each.fix": "在客户端重用连接（keep-alive、连接池、HTTP/2），或恢复 TLS 会话。",
    "blocks_in_turn": (
        "{client} 向 {server} 发送 {sent}，分 {n} 块，每块 {block}，前一块得到应答后才发下一块：每块一次 {trip_ms} 的往返，"
        "共 {whole_ms}，其中 {path_ms} 在路上"
    ),
    "blocks_in_turn.fix": (
        "让 {client} 的程序同时有多块在途（SFTP：更多未完成请求 sftp -R，或更大的块 -B；流水线或并行上传），或把文件作为一个流发送。"
    ),
    "messages_in_turn": (
        "{server} 逐条向 {client} 发送消息，{client} 确认上一条后才发下一条：每条一个往返 {each_ms}，"
        "连续 {run} 条用了 {whole_ms}"
    ),
    "messages_in_turn.fix": (
        "允许多条同时在途：mosquitto 的 max_inflight_messages、AMQP 的 prefetch（basic.qos）、NATS 的 max_ack_pending、"
        "消费者的 receive maximum；或一次确认多条。"
    ),
    "consumer_in_turn": (
        "消费者 {client} 处理 {server} 的每条消息要 {each_ms}，它一确认，后者就发下一条："
        "连续 {run} 条用了 {whole_ms}，队列里的其他消息都在后面等待"
    ),
    "consumer_in_turn.fix": (
        "让 {client} 的程序更快处理每条消息，或让更多消费者从 {server} 的队列取消息；消息代理本身是立即转发的。"
    ),
    "in_turn": "到 {server} 的 {n} 个请求一个接一个地发出，每个一次 {trip_ms} 的往返：连续 {run} 个花了 {whole_ms}，其中 {path_ms} 在路上{alike}",
    "in_turn_alike": "；其中 {n} 个是 {name}",
    "connects_in_turn": (
        "{client} 从 {server} 一个接一个地取了 {n} 样东西，每样都用新连接：共 {whole_ms}，几乎全在路上，每样两次 {trip_ms} 的往返"
    ),
    "connects_in_turn.fix": "保持连接（keep-alive、HTTP/2）、并行获取，或少取：打包、靠近客户端的缓存或代理。服务器的程序与此无关。",
    "expect_continue": (
        "到 {server} 的 {of} 次上传中 {n} 次在头部与正文之间等了 {span_ms}：等待 100 Continue（Expect: 100-continue）的"
        "客户端正等这么久，而它没有来"
    ),
    "expect_continue.fix": "让服务器应答 Expect 头（100 Continue），或在客户端去掉它（curl -H 'Expect:'）。",
    "in_turn.fix": "一次请求多个：一个查询取所有行（N+1）、MGET、批量或流水线，或并行请求。",
    "servers_left": (
        "另有 {n} 台服务器共 {requests} 个请求，其中 {slow} 个慢，没有自己的行：只有慢请求最多的 {most} 台有"
    ),
    "between": "；",
    "share_tiny": "不到 0.1 %",
    "and_more": "，",
    "sentence": "{text}。",
    "at_server": "{server}：",
    "of_server": "{server}：{text}",
    "check_flow": "latpcap flow {file} --exchange {exchange:d} -o flow.png",
    "check_frames": "tshark -r {file} -Y {filter}",
    "for_owner": "致{owner}的负责人",
    "for_owner_of": "致{owner} {end} 的负责人",
    "owner_took": "{cause} 在 {of} 个请求中的 {n} 个里共占 {all_ms:s}：中位 {median_ms}，最长 {max_ms}",
    "but": "{headline}；{but}",
    "side_client": "客户端",
    "side_server": "服务器",
    "side_client and server": "客户端和服务器",
    "sure_proven": "",
    "sure_probable": "很可能",
    "sure_suspected": "也许",
    "sure_unknown": "也许",
    "requests": "{n} 个请求",
    "answered_requests": "{n} 个已应答的请求",
    "turns": "{n} 轮",
    "cause_network": "路径的往返时间",
    "cause_queueing": "路径上的队列",
    "cause_bandwidth": "线路：字节只能以它或 pacing 容许的速度发出",
    "cause_server_think": "服务器程序",
    "cause_client_think": "客户端程序",
    "cause_nagle": "{owner}的 Nagle 算法：小报文段要等前一个的 ACK",
    "cause_delayed_ack": "{owner}压住的 ACK",
    "cause_cork": "{owner}的 cork（TCP_CORK、MSG_MORE）",
    "cause_nagle + delayed_ack": "{holder}压住、{owner}在等的确认",
    "cause_cwnd": "{owner}的拥塞窗口",
    "cause_receive_window": "{owner}的接收窗口",
    "cause_zero_window": "零窗口：{owner}的程序不读",
    "cause_fast_retransmit": "丢失的报文段，靠重复 ACK 修复",
    "cause_tlp": "丢失的报文段，靠尾部丢失探测修复",
    "cause_rto": "丢失的报文段，只靠重传定时器修复",
    "cause_host_drops": "已到达{owner}主机的报文段，重发（定时器或探测）后才被接收",
    "cause_reordering": "被其他报文段超越的报文段",
    "cause_both_repairs": "丢失的报文段，靠尾部丢失探测和重传定时器修复",
    "cause_alone": "{cause}，没有别的东西拖住它",
    "capture_empty": "抓包是空的：没有一帧",
    "capture_no_tcp": "没有 TCP 流：latpcap 没有可判断的",
    "none_answered": "没有完整的请求和应答，因此没有可判断的延迟；连接：{parts}",
    "none_answered_on": "tcp.stream {stream} 上没有完整的请求和应答，因此没有可判断的延迟；连接：{parts}",
    "silent_unanswered": "{n} 条的 SYN 没有应答",
    "silent_without_data": "{n} 条没有数据",
    "silent_without_answer": "{n} 条有数据但没有完整应答{waited}",
    "silent_longest": "（从请求到结束 {longest_ms}）",
    "no_time": "{server}：按抓包的时钟，其应答没有花时间",
    "cannot_say": "{at}此抓包无法说明时间花在哪里：{why}",
    "slow_server": "{server} 慢：{part}{sure}花在{cause}{second}{few}{each}",
    "waits_each": "：中位数 {wait_ms}{most}",
    "waits_most": "，最长 {most_ms}",
    "slow_at_server": "到 {server} 的请求慢：{part}{sure}花在{cause}{second}{few}{each}",
    "part_most": "大部分时间",
    "part_largest": "最大一部分时间",
    "part_most_beyond": "路径往返之外的大部分时间",
    "part_largest_beyond": "路径往返之外的最大一部分时间",
    "few_of_slow": "，涉及 {of} 个慢请求中的 {n} 个",
    "second_cause": "（{first_share}；{share} 为 {cause}）",
    "slow_one": "{at}{name} 花了 {took_ms}，{sure}因为{cause}{second}；其他 {others} 个不慢",
    "slow_few": "{at}{of} 个请求中 {n} 个慢，{sure}因为{cause}{second}{each}",
    "slow_few_mixed": "{at}{of} 个请求中 {n} 个慢；{part}{sure}花在{cause}{second}，涉及其中 {hit} 个{each}",
    "their_most": "其大部分时间",
    "their_largest": "其最大一部分时间",
    "their_most_beyond": "其路径往返之外的大部分时间",
    "their_largest_beyond": "其路径往返之外的最大一部分时间",
    "over": "超过 {limit:,.4g} ms",
    "over_beyond": "路径往返之外超过 {limit:,.4g} ms",
    "log_in_quick": (
        "{server}：交互会话（{protocol}）：登录的 {of} 步 p50 为 {p50_ms}，没有慢的；之后输入的内容不作判断"
    ),
    "log_in_slow": (
        "{server}：交互会话（{protocol}）：登录的 {of} 步中 {n} 步{over}，最慢 {most_ms}{why}；之后输入的内容不作判断"
    ),
    "log_in_because": "，{sure}因为{cause}{second}",
    "log_in_unknown": "；此抓包无法说明原因：{why}",
    "nothing_slow": "{server} 没有什么慢：{many}",
    "nothing_slow_path": "{server} 没有什么慢：{many}；花时间的{sure}是路径的往返",
    "long_path": "{server} 花时间的{sure}是路径的往返，占 {path_ms}：{many}",
    "long_path_halves": (
        "{server} 花时间的{sure}是路径的往返，占 {path_ms}：{many}；其中 {n} 个恰在前一个应答到达时开始："
        "可能是请求的后一部分，客户端的 Nagle 算法把它压到了那时"
    ),
    "many_took": "{many}，p50 {p50_ms:n}，p99 {p99_ms}{few}{polls}{streams}",
    "few_took": "（{n} 个{over}，最长 {most_ms}）",
    "trip_to_clients": "，在其客户端再加 {trip_ms}（往返路径）",
    "with_pushes": "它推送的 {n} 条消息没有人在等",
    "with_polls": "；另有 {n} 个有意等待事件（长轮询）",
    "with_streams": "，其中 {n} 个是事件流",
    "one_request_took": "唯一的请求花了 {p50_ms}",
    "one_turn_took": "唯一的一轮花了 {p50_ms}",
    "one_stream_took": "唯一的请求是事件流，{p50_ms} 后开始应答",
    "one_stream_ticked": "唯一的请求是事件流，有第一件事可报告时才开始应答",
    "stall_slow": "{server} {sure}慢，因为{why}{each}",
    "stall_few": "{at}{many}中 {n} 个慢，{sure}因为{why}{each}",
    "stall_server": "它的应答在等客户端压住的确认",
    "stall_client": "其客户端的请求在等它压住的确认",
    "stall_server_and_client": "{why}，并且{sure}其客户端的请求在等它压住的确认",
    "stall_client_and_server": "{why}，并且{sure}它的应答在等客户端压住的确认",
    "behind_slow": "{server} {sure}慢，因为它所询问的 {behind} 慢：{why}{each}",
    "behind_few": "{at}{of} 个请求中 {n} 个慢，{sure}因为它所询问的 {behind} 慢：{why}{each}",
    "behind_cause": "那里大部分时间花在{cause}",
    "behind_stall_server": "来自那里的应答在等这一台压住的确认",
    "behind_stall_client": "发往那里的请求在等它压住的确认",
    "behind_unknown": "另一台服务器",
    "session": "{at}交互会话（{protocol}）：{many}中 {n} 轮{over}，等的可能是人",
    "tunnel": "{at}隧道（{protocol}）：{many}中 {n} 轮{over}，但里面的包并不互相应答",
    "sealed": "{at}{many}{over}，如果有人在等（{reader}）；{part}{sure}花在{cause}{second}{each}",
    "sealed_many": "{of} 轮中 {n} 轮",
    "sealed_one": "唯一的一轮",
    "reader_tls": "在 TLS 内，没有密钥",
    "reader_blind": "无法读出请求的内容",
    "reader_none": "没有读取器认识此协议",
    "trace_stall": "但跟踪与此矛盾：迟到的字节是程序写得晚",
    "trace_program": "但跟踪与此矛盾：程序写出的数据被内核压住",
    "first_line": "{file}：{frames} 帧，{streams} 个 TCP 流，{exchanges} 次交互，{span}{place}",
    "first_line_filtered": "{file} [{filter}]：{frames} 帧，{streams} 个 TCP 流，{exchanges} 次交互，{span}{place}",
    "span": "{seconds:,.2f} s 的流量",
    "span_days": "首帧到末帧 {days:,.1f} 天",
    "captured_at_client": "，在客户端抓取",
    "captured_at_server": "，在服务器抓取",
    "skipped": "{of} 帧中的 {n} 帧：{reason}",
    "pings_in_probes": "{n} 个 ping，连同往返时间在表 probes 中",
    "took_many": "{many}，p50 {p50_ms:n}，p99 {p99_ms}",
    "took_one": "{many}，{p50_ms}",
    "slow_over": "{n} 个慢（{over}）",
    "cut_all": "没有应答到底：为已见部分",
    "cut_some": "其中 {n} 个没有应答到底：为已见部分",
    "incomplete": "{n} 个不完整",
    "incomplete_goodbyes": "{n} 个不完整（客户端 FIN 之前的最后一句）",
    "incomplete_some_goodbyes": "{n} 个不完整（其中 {last} 个是客户端 FIN 之前的最后一句）",
    "further_slow": "{n} 台服务器：那里有 {slow} 个慢请求",
    "further_quick": "{n} 台服务器：那里没有什么慢",
    "further_hint": "（--top {top} 列出）",
    "server_line": "{server}{behind}：{of} 个请求中 {n} 个慢，p50 {p50_ms:n}，p99 {p99_ms}{family}",
    "server_behind": "，在 {server} 之后",
    "server_family": "，{family}（{grade}）",
    "slow_time": "占慢请求时间的 {part_share}：{causes} ms",
    "slow_time_waited": "占慢请求中被等待时间的 {part_share}：{causes} ms",
    "all_time": "占时间的 {part_share}：{causes} ms",
    "all_time_waited": "占被等待时间的 {part_share}：{causes} ms",
    "segments_lost": "{n} 个报文段丢失",
    "share_of": (
        "p50 的 {of_p50_ms} 中 {p50_ms:n}（{p50_share}），p99 的 {of_p99_ms} 中 {p99_ms:n}（{p99_share}）；{many}中 {n} 个"
    ),
    "path_of_wait": "每次等待中有 {path_ms} 是路径的",
    "nagle_waits": "nagle：小报文段（{second} 字节）要等它前面的（{first} 字节）得到确认",
    "held": "delayed_ack：压住 {low} ms",
    "held_range": "delayed_ack：压住 {low}-{high} ms，中位数 {median:.1f}",
    "timer_tick": "它们结束于 {tick:.4g} ms 的节拍：内核定时器",
    "timer_fitted": "{timer:.0f} ms 定时器{tick}{whose}",
    "on_tick": "，节拍 {tick:.4g} ms",
    "timer_of": "（{system}）",
    "see": "帧 {frames}",
    "see_stream": "帧 {frames}（tcp.stream eq {stream:d}）",
    "see_stall": (
        "帧 {frames}（tcp.stream eq {stream:d}）：报文段，其 ACK 在 {ack:.1f} ms 后，再过 {release_us} 是下一个报文段"
    ),
    "see_cause": "帧 {frames}（tcp.stream eq {stream:d}）：{cause} {time}",
    "see_behind": "帧 {frames}（到 {server}）：{cause} {time}",
    "see_push": "{seen}：一个报文段、其 ACK，以及为此等了 {waited_ms} 的数据",
    "all_pieces": "{all_ms}",
    "longest_piece": "{longest_ms}，共 {n} 段、合计 {all_ms} 中最长的一段",
    "slowest": "{name} 花了 {took_ms}{why}：帧 {frames}（tcp.stream eq {stream:d}）",
    "slowest_cause": "，其中 {part_ms} 为 {cause}",
    "gain": "p50 将为 {then_ms}，而不是 {now_ms:n}",
    "gain_best": "p50 最好为 {best_ms}，而不是 {now_ms:n}",
    "gain_p99": "p99 最好为 {best_ms}，而不是 {now_ms:n}",
    "gain_rate": "{gain}，每秒请求数为 {times} 倍；之后受服务器能力限制",
    "gain_unseen": "客户端立即再次请求：届时服务器能处理多少，此抓包看不出",
    "gain_not_proven": "最坏时毫无改善：已证实的部分太少",
    "next": "{cause}（{owner}，占全部时间的 {part_share}）",
    "next_there": "{cause}（{owner}，占全部时间的 {part_share}；在那里设 TCP_NODELAY 也能解决）",
    "first_fast": "{n} 个流的第一次交互很快（起始的快速 ACK）",
    "fin_released": "{n} 次等待由对端的 FIN 结束，而不是其定时器",
    "held_harmless": "{n} 个无人等待的延迟 ACK：无害",
    "held_for_nobody": "{n} 个无人等待的延迟 ACK",
    "also_unanswered": "{n} 条连接从未应答{whose}",
    "also_unreachable": "{n} 条连接不可达{whose}",
    "also_traceroute": "{n} 条连接由路由器应答{whose}",
    "also_refused": "{n} 条连接被拒绝{whose}",
    "also_reset": "{n} 条连接以 RST 关闭{whose}",
    "also_half_open": "{n} 条连接未完成{whose}",
    "of_one_server": "（{server}）",
    "of_most_server": "（大多为 {server}）",
    "of_servers": "（{n} 台服务器）",
    "paused": "客户端在请求之间停顿 {pause_ms}，共 {n} 次：不计入延迟",
    "passed_between": "从应答到下一个请求隔了 {pause_ms}，共 {n} 次：不计入延迟",
    "on_stream": "{text}（tcp.stream eq {stream:d}）",
    "not_network": "路径（{part_share}）",
    "not_server_think": "服务器程序（{part_share}）",
    "not_client_think": "客户端程序（{part_share}）",
    "not_losses": "丢包（无）",
    "lost_repaired": "{n} 个报文段，修复占时间的 {repair_share}",
    "lost_unnoticed": "{n} 个报文段；没有请求等待其修复",
    "options": "{sender} TCP_NODELAY {nodelay}（{seen}）；{receiver} delayed ACK {delayed_ack}，TCP_NODELAY {back}",
    "options_no_choice": (
        "{sender} TCP_NODELAY {nodelay}（{seen}）；{receiver} delayed ACK {delayed_ack}，TCP_NODELAY {back}（从未需要选择）"
    ),
    "seen_off": "{off} 次支持，{on} 次反对",
    "seen_on": "{on} 次支持，{off} 次反对",
    "seen_mixed": "{of} 条连接中 {n} 条为 off",
    "seen_unknown": "见到 off {off} 次，on {on} 次",
    "sure_rival": "{grade}；另一种解释：{rival}（{lost}）",
    "rival": "另一种解释：{rival}（{lost}）",
    "grade_unknown": "否",
    "freed": "{grade}：{which}在 ACK 后 {left_us} 内发出",
    "freed_far": "{grade}：{which}在 ACK 后 {left_us} 内发出（已减去路径）",
    "freed_one": "被释放的那个报文段",
    "freed_most": "{n} 个被释放的报文段中 95 % ",
    "freed_tight": "{of} 个被释放的报文段中 {n} 个",
    "gaps_follow": "间隔跟随 ACK（斜率 {slope:.2f}，停顿则为 0）",
    "no_named_cause": "{part_share} 的时间没有指名的原因",
    "hidden_program": "{sender}程序在两次写之间花了多久：被等待掩盖",
    "push_options": "{sender} TCP_NODELAY {nodelay}；{holder} delayed ACK {delayed_ack}",
    "sooner": "每条早发出 {sooner_ms}",
    "sooner_at_best": "每条最好早发出 {best_ms}",
    "push_line": "{text}，{grade}：{seen}；{fix}",
    "exchange": "交互 {exchange}（tcp.stream eq {stream:d}，其上第 {index} 次）",
    "not_complete": "不完整（因 {cut_by} 中断）",
    "exchange_took": "{took_ms}，从帧 {first} 到 {last}",
    "exchange_end": "末尾",
    "cause_inside": "{cause}（在 {parent} 之内）",
    "piece_frames": "帧 {frames}  （{rule}，{grade}）",
    "shorter_pieces": "在 {n} 个较短的段中",
    "fix_at": "在 {server}：{fix}",
    "fix_towards": "对 {server}：{fix}",
    "fix_before_first": "{fix}；它发送的大部分已有：要在第一个字节之前设置",
    "fix_set_from": "{fix}；从帧 {frame} 起已设置",
    "fix_set_before": "{fix}；帧 {frame} 之前已设置",
    "mixed_errors": "{server} 以错误应答：{of} 个中 {statuses}",
    "errors": "{server} 的 {of} 个应答中 {n} 个是 {status}",
    "logins_refused": "{server} 的 {of} 个应答中 {n} 个是 {status}：登录被拒绝",
    "redirect_loop": "{server} 的 {of} 个应答中 {n} 个是 {status}：重定向循环，或客户端不跟随（{target} 被请求 {again} 次）",
    "traffic": "{many}，{protocol}",
    "traffic_for": "{many}，{protocol}，{name}",
    "traffic_for_some": "{many}，{protocol}，{name} 和另外 {n} 个名字",
    "traffic_answers": "应答 {statuses}",
    "unnamed_handshake": "一次握手",
    "unnamed_message": "一条消息",
    "unnamed_content": "一封邮件的正文",
    "unnamed_with": "{name}，{target}",
    "dns_unanswered": "{of} 次解析中 {n} 次没有应答",
    "dns_before_connect": "连接 {name} 之前 DNS 花了 {took_ms}（帧 {frame}）",
    "dns_took": "DNS 为 {name} 花了 {took_ms}（帧 {frame}）；没有已知在等它的连接",
    "dns_only_unanswered": "唯一的解析没有应答",
    "dns_none_answered": "{n} 次解析都没有应答",
    "dns_quick": "{n} 次解析中位数 {median_ms}，最多 {most_ms}",
    "dns_one_quick": "{n} 次解析花了 {most_ms}",
    "dns_is_not_it": "不是 DNS：{took}",
    "one_direction": "{of} 个流中 {n} 个只抓到一个方向：那里最多只能怀疑",
    "one_direction_all": "唯一的流只抓到一个方向：那里最多只能怀疑",
    "twice": "{of} 个数据报文段中 {n} 个在抓包中出现两次",
    "copies": "{of} 个数据报文段在抓包中有 {n} 个副本",
    "doubled_on_path": "{seen}：在路径上或由镜像端口重复",
    "doubled": (
        "{seen}（两个抓包点同时，或镜像端口）：只在一处抓，或先去掉重复（editcap -d；tcpdump -i any 的：editcap -I 20 -D 100）"
    ),
    "gaps": "{of} 次交互中 {n} 次在抓包中缺少包或包尾：对它们不凭剩余部分判断",
    "gaps_in_one": "唯一的交互在抓包中缺少包或包尾：不凭剩余部分判断",
    "dropped": "抓包时网卡丢了 {n} 个包：看似没有的可能有过",
    "passed_unseen": ("至少 {n} 个已发送的包不在抓包中（IPv4 标识跳过它们）：在此点之前丢失，或抓包漏掉"),
    "clock_ahead": "抓包的时钟跳前了（至多 {seconds:.3g} s）：主机自己的时间戳没有",
    "merged": "文件里有 {n} 个时间的抓包，相隔至多 {days:,.0f} 天：同一个地址未必是同一台主机",
    "clock_back": "时间戳倒退 {n} 次：短时间不可信",
    "mid_stream": "{of} 个流中 {n} 个在抓包之前开始：其 MSS 和窗口缩放是猜测的",
    "queue": (
        "前面排队的请求中位数 {n} 个，应答间隔 {each_us}：服务器 {think_ms} 的时间中有 {wait_ms:n} 可能是等它们；"
        "前面有 {fewest} 个时需 {alone_ms}"
    ),
    "queue_empty": (
        "前面排队的请求中位数 {n} 个，应答间隔 {each_us}：服务器 {think_ms} 的时间中有 {wait_ms:n} 可能是等它们；"
        "前面没有时需 {alone_ms}"
    ),
    "rival_halves": "客户端的 Nagle 算法，它把请求的后一部分压住一个往返",
    "rival_halves_lost": (
        "未排除：{n} 轮恰在前一轮的应答到达时开始，没有读取器看得出它们是什么；请在客户端设置 TCP_NODELAY 再测一次"
    ),
    "rival_sharing": "请求共享一个处理器或一把锁，而不是排队等候",
    "rival_sharing_lost": "未排除：两者都随同时的请求增多而变长",
    "some_connections": "到 {server} 的 {of} 条连接中的 {n} 条",
    "only_connection": "到 {server} 的唯一连接",
    "syn_flood": "SYN 洪水：来自 {sources} 个地址的 {of} 条连接中 {n} 条从未完成（每秒 {rate:,.0f} 个；服务器应答了 {answered} 个）",
    "unanswered_waited": "（{span_ms}）",
    "unanswered_port": "{connections}的 SYN 从未应答{waited}：该端口应答了其他连接，所以它们在途中被丢弃，或 accept 队列已满",
    "unanswered_host": "{connections}的 SYN 从未应答：该主机在其他端口应答，所以是防火墙丢弃，或路径丢失",
    "unanswered_all": "{connections}的 SYN 从未应答：防火墙丢弃，或主机不在",
    "traced": "{connections}的 SYN 由途中路由器应答（ICMP time exceeded）：traceroute{rest}",
    "traced_rest": "；{parts}",
    "traced_lost": "{n} 个没有应答",
    "traced_reached": "{n} 个到达",
    "unreachable": "{connections}的 SYN 以 ICMP unreachable 应答：没有路由、主机或该端口",
    "half_open": "{connections}得到 SYN-ACK 却从未完成握手：探测，或 SYN-ACK 没有到达",
    "refused": "{connections}被 RST 拒绝：该端口无人监听",
    "zero_window": "{server}：{side}有 {n} 次没有空间接收数据（零窗口，首次在帧 {frame}）",
    "ecn": "{server}：路径标记包而不丢弃（ECN）：{n} 个 ACK 报告它（ECE，首次在帧 {frame}）",
    "reset_by_server": "{connections}由服务器的 RST 关闭：它留下未读的字节，或放弃了",
    "reset_by_client": "{connections}由客户端的 RST 关闭：不等结束的程序会这样",
    "elsewhere_too": "{text}；到其他服务器或端口的 {n} 条连接也一样",
    "setup_syn_rto": "{n} 条连接的建立多花了 {span_ms}：SYN 或 SYN-ACK 被丢弃，只靠其定时器重发",
    "setup_client_think": "客户端在 {n} 条连接上握手 {span_ms} 之后才请求：是其程序花的时间，不是服务器",
    "setup_cork": (
        "客户端的请求在 {n} 条连接上比前一个应答晚 {span_ms} 发出，每次都随内核定时器：没有取消的 cork（TCP_CORK、MSG_MORE），"
        "或程序恰好睡这么久"
    ),
    "never_answered.fix": "查看 {server} 的程序当时如何处理 {name}（日志、死锁、队列、其后端），并让客户端更早超时。",
    "never_answered_some.fix": "查看 {server} 的程序当时如何处理 {name}（日志、死锁、队列、其后端），并让客户端更早超时。",
    "never_answered": "{server} 从未应答 {name}（帧 {frame:d}）：{wait} 过去没有应答",
    "never_answered_some": "{server} 对 {of} 个请求中的 {n} 个从未应答；最长等了 {wait}，为 {name}（帧 {frame:d}）",
    "closed_instead.fix": "查看 {server} 在帧 {frame} 时的日志：崩溃、限制、超时或重启；客户端可以重试不产生副作用的请求。",
    "closed_instead_one.fix": "查看 {server} 在帧 {frame} 时的日志：崩溃、限制、超时或重启；客户端可以重试不产生副作用的请求。",
    "closed_instead_some.fix": "查看 {server} 在帧 {frame} 时的日志：崩溃、限制、超时或重启；客户端可以重试不产生副作用的请求。",
    "closed_instead": "{server} 没有应答 {name} 而关闭连接（帧 {frame:d}）{after}",
    "closed_instead_one": "{server} 没有应答 {name} 而关闭连接（帧 {frame:d}），是 {of} 个请求中的 1 个{after}",
    "closed_instead_some": "{server} 对 {of} 个请求中的 {n} 个没有应答而关闭连接，其一是 {name}（帧 {frame:d}）{after}",
    "wait": "{wait_ms}",
    "wait_hour": "超过一小时",
    "silent_peer_server": "{server} 在帧 {frame:d} 之后沉默：客户端在 {wait_ms} 内重发数据 {repeats} 次，没有得到确认{request}",
    "silent_request": "（它在等待 {name}）",
    "silent_peer_server.fix": "也在服务器端抓包：若重传没有到达那里，是防火墙或路径丢弃了它们；若到达了，是它的主机不应答。",
    "silent_peer_client": "{server} 的客户端在帧 {frame:d} 之后沉默：服务器在 {wait_ms} 内重发数据 {repeats} 次，没有得到确认",
    "silent_peers": "{text}；{n} 条连接都这样",
    "option_off": (
        "从帧 {frame} 起，{server} 的{side}的小报文段要等 ACK（TCP_NODELAY off）：之前 {before} 个立即发出，之后 {after} 个等待"
    ),
    "option_on": (
        "从帧 {frame} 起，{server} 的{side}的小报文段不再等 ACK（TCP_NODELAY on）：之前 {before} 个等待，之后 {after} 个立即发出"
    ),
    "held_back_harmless": ("{side}压住 {n} 个 ACK（{low:.1f}-{high:.1f} ms），当时无人等待：对 {server} 的交互无害"),
    "one_way_data": (
        "{side}在两个报文段之间停顿 {n} 次，其间收到过对端（{low:.1f}-{high:.1f} ms）：怀疑{sender}的 Nagle 与{receiver}的延迟 "
        "ACK；没有另一方向的包无法断定"
    ),
    "one_way_acks": (
        "{side}压住 {n} 个 ACK（{low:.1f}-{high:.1f} ms）：怀疑{sender}的 Nagle 与{receiver}的延迟 ACK；没有另一方向的包无法断定"
    ),
    "rival_pauses": "{sender}的程序在两次写之间停顿",
    "rival_one_way_lost": "未排除：另一方向不在抓包中",
    "trace_by_icmp": "没有 TCP：用 ICMP 对 {target} 的 traceroute：路由器应答了 {of} 个回显请求中的 {n} 个",
    "trace_by_udp": "没有 TCP：用 UDP 对 {target} 的 traceroute：路由器应答了 {n} 个{of}{came}",
    "of_datagrams": "（共 {n} 个数据报）",
    "came_unreachable": "，{n} 个以 ICMP unreachable 结束",
    "no_tcp": "没有 TCP：{kinds}",
    "no_tcp_unreachable": "没有 TCP：{kinds}；{n} 个数据报以 ICMP unreachable 应答",
    "all_frames": "全部 {of} 帧是 {kind}",
    "all_first_frames": "前 {of} 帧全是 {kind}",
    "one_frame": "唯一的一帧是 {kind}",
    "of_frames": "{of} 帧中 {n} 帧是 {kind}",
    "of_first_frames": "前 {of} 帧中 {n} 帧是 {kind}",
    "by_its_port": "UDP（按端口为 {protocol}）",
    "pings": "没有 TCP：{n} 个 ping，{came}",
    "pings_one_trip": "没有 TCP：{n} 个 ping，{came}；往返 {trip_ms}",
    "pings_trips": "没有 TCP：{n} 个 ping，{came}；往返 {low_ms:n} 到 {high_ms}，平均 {mean_ms:n}",
    "pings_icmp": "{n} 个得到 ICMP {word}",
    "ping_icmp": "得到 ICMP {word}",
    "pings_lost": "{n} 个没有应答",
    "ping_lost": "没有应答",
    "pings_none": "都没有应答",
    "pings_all": "都有应答",
    "ping_answered": "有应答",
    "scan": "扫描：{client} 试了 {host} 的 {n} 个端口：{shut} 次被拒绝，{nothing} 次没有应答，{answered} 次有应答",
    "hosts": "{n} 台主机",
    "one_direction_capture": "{which}只抓到一个方向：看不出延迟，请抓两个方向",
    "its_one_connection": "唯一的连接",
    "of_connections": "{of} 条连接中 {n} 条",
    "idle": "空闲：{n} 条连接在 {seconds:,.0f} s 内没有任何数据",
    "not_ruled_out": "未排除：{why}",
    "rival_left": "{name}，{meaning}",
    "rival_other_path_timer": "delayed_ack，该主机在另一条连接上压住的 ACK，不在此抓包中",
    "rival_other_path_timer_lost": "未排除：等待恰如这种定时器那么长",
    "rival_by_itself": "服务器主机在被请求时自行请求",
    "rival_by_itself_lost": "那些请求总在这些请求之内，从请求之后不久到应答之前不久，不论何时",
    "rival_too_long": "该主机其间在等的另一条连接",
    "rival_too_long_lost": "它不在此抓包中",
    "rival_stall": "{owner}的 Nagle，{holder}的延迟 ACK",
    "rival_programs": "程序慢",
    "rival_programs_lost": "不经过程序的内核握手花了 {took_ms}",
    "rival_programs_kernels": "仅由内核作出的最短应答也一样久",
    "rival_overtaken": "包在路径上被超越",
    "rival_overtaken_lost": "发送方因重复或选择确认而重发",
    "rival_repeated": "程序停顿",
    "rival_repeated_lost": "字节第二次发出，程序不会这样",
    "rival_cwnd": "发送方的拥塞窗口",
    "rival_cwnd_lost": "等待的数据放不进通告的窗口",
    "rival_any": "任何其他原因",
    "rival_any_lost": "能说明的包不在抓包中",
    "pause_on_some": "{of} 条连接中 {n} 条",
    "pause_follows": "间隔跟随 ACK（斜率 {slope:.2f}；停顿会是 0）",
    "pause_left": "{of} 个报文段中 {n} 个在其 ACK 后 {within:.3g} ms 内发出",
    "pause_left_before": "{n} 个在此之前发出",
    "pause_none_before": "没有在此之前发出的",
    "pause_left_before_elsewhere": "{n} 个在此之前发出，在其他连接上",
    "pause_none_before_elsewhere": "没有在此之前发出的，在其他连接上",
    "left_over": "{n} 个小报文段越过未确认的发出",
    "stall_on_some": "未排除：{left}，但 {n} 个随其 ACK 发出：TCP_NODELAY 可能没有设在所有套接字上",
    "stall_no_nagle": "{left}：那里 Nagle 不起作用",
    "stall_no_slope": "间隔不跟随它们附近的 ACK（斜率 {slope:.2f}）",
    "stall_late": "{of} 个伴有被压住 ACK 的间隔中 {n} 个结束得像内核发送那样快",
    "stall_all_late": "{of} 个间隔中没有一个在被压住的 ACK 之后像内核发送那样快地结束",
    "stall_too": "它也在，另有一条结论；此处的时间不含它",
    "stall_without": "其 {n} 个间隔以被压住的 ACK 结束：此处所证不含它们",
    "stall_none": "这里没有小报文段在未确认的后面等待",
    "nodelay": "在{owner}设 TCP_NODELAY{known}，或两部分用一次写发出（writev）",
    "nodelay_push": "在{owner}设 TCP_NODELAY{known}，或把同时要发的用一次写发出",
    "host_drops": (
        "包到达了{owner}主机（它们在此抓包中）却没有被接收：在那里查看 accept 队列是否满（nstat TcpExtListenOverflows、"
        "somaxconn）、抓包点之后的防火墙、套接字缓冲是否满。"
    ),
    "profile_server_think_if": "对该请求剖析服务器，先排除另一种解释{how}。",
    "profile_client_think_if": "剖析客户端，先排除另一种解释{how}。",
    "ruled_out_nagle": "（在{owner}设 TCP_NODELAY 再测）",
    "ruled_out_cork": "（在{owner}用 strace -e trace=network 看 TCP_CORK 和 MSG_MORE）",
    "ruled_out_delayed_ack": "（也抓该主机的其他连接）",
    "ruled_out_network": "（也在{owner}处抓包）",
    "ruled_out_queueing": "（也在{owner}处抓包）",
    "cut_by_losses": "查清路径在哪里丢包：{n} 个丢失的报文段缩小了窗口。{fix}",
    "or_long_poll": "{fix}（或者这是有意等待的长轮询？）",
    "or_expected": (
        "{fix}（或者它在等 100 Continue，如 curl 等一秒？那就应答其 Expect 头，或去掉它：curl -H 'Expect:'。）"
    ),
    "cost_nagle + delayed_ack": "程序分小块写时小包更多",
    "cost_nagle": "程序分小块写时小包更多",
    "cost_delayed_ack": "ACK 包更多",
    "cost_cork": "包更多、更小",
    "cost_receive_window": "接收方的内存",
    "cost_cwnd": "向可能承受不了的路径突发",
    "cost_queueing": "瓶颈处的部分吞吐量",
    "acks": "确认",
    "acks_held_for_client": "服务器压住的确认",
    "acks_held_for_server": "客户端压住的确认",
    "push_waits": "中位数 {median_ms}，合计 {sum_ms}",
    "push_wait": "{sum_ms}",
    "unasked": "客户端主动发给 {server} 的数据{sure}在其内核中等{until}，{n} 次：{wait}",
    "unasked_mqtt": "客户端主动发给 {server} 的数据（PUBACK 等）{sure}在其内核中等{until}，{n} 次：{wait}",
    "pushed": "{server} 推送的{kind}中 {n} 条{sure}在其内核中等{until}：{wait}",
    "push_websocket": " {n} 条 WebSocket 消息",
    "push_mqtt": " {n} 条 MQTT 消息",
    "push_message": " {n} 条 {protocol} 消息",
    "push_messages": " {n} 条消息",
    "process_is": "{end} 是 {process}",
    "process_pid": "{name}（pid {pid:d}）",
    "process_in": "{name}（pid {pid:d}，位于 {place}）",
    "process_unnamed": "某进程",
    "process_more": "另有 {n} 个",
    "log_none": "{n} 行中没有关于此抓包请求的（时钟不同？名字不同？）",
    "log_found": "{of} 个请求中找到 {n} 行：服务器记 p50 {logged_ms}，抓包为 {seen_ms:n}",
    "log_inside": "按服务器自己的时钟，{share} 的时间在服务器内：程序，或它所询问的",
    "log_outside": "{share} 的时间在服务器写完应答之后或读到请求之前",
    "log_both": "按服务器自己的时钟，{share} 的时间在服务器内，其余在外",
    "trace_none": "跟踪中的连接没有一条在此抓包中",
    "trace_options": "{n} 条连接的{side}套接字：{options}",
    "trace_held": "{spent_ms} 的停滞中，迟到的字节有 {share} 的时间已写入内核：跟踪与此一致",
    "trace_held_not": "{spent_ms} 的停滞中，迟到的字节有 {share} 的时间已写入内核：是程序写得晚，不是停滞",
    "trace_held_part": "{spent_ms} 的停滞中，迟到的字节有 {share} 的时间已写入内核：跟踪部分一致",
    "trace_late": "程序自己的 {spent_ms} 中，{share} 在它写之前过去：跟踪与此一致",
    "trace_late_not": "程序自己的 {spent_ms} 中，{share} 在它写之前过去：已写的被内核压住",
    "trace_late_part": "程序自己的 {spent_ms} 中，{share} 在它写之前过去：跟踪部分一致",
    "one_turn": "一轮",
    "a_download": "下载",
    "an_upload": "上传",
    "knob_nginx": "（nginx：tcp_nodelay on;）",
    "knob_openresty": "（OpenResty：tcp_nodelay on;）",
    "knob_tengine": "（Tengine：tcp_nodelay on;）",
    "knob_http.server": "（Python 的 http.server：请求处理类中 disable_nagle_algorithm = True）",
    "knob_wsgiref": "（Python 的 wsgiref：请求处理类中 disable_nagle_algorithm = True）",
    "knob_werkzeug": "（Werkzeug：请求处理类中 disable_nagle_algorithm = True）",
    "knob_webrick": "（WEBrick：在子类的 accept_client 中 socket.setsockopt(:TCP, :NODELAY, 1)）",
    "knob_libwww-perl": "（Perl 的 HTTP::Daemon：accept 之后 $client->setsockopt(IPPROTO_TCP, TCP_NODELAY, 1)）",
    "knob_akka-http": "（Akka HTTP：akka.http.server.socket-options.tcp-no-delay = on）",
    "knob_pekko-http": "（Pekko HTTP：pekko.http.server.socket-options.tcp-no-delay = on）",
    "sets_apache-coyote": '（Tomcat 会设置它，除非其 Connector 有 tcpNoDelay="false"：前面有代理吗？）',
    "sets_apache": "（Apache httpd 自己会设置它：前面有代理吗？）",
    "sets_jetty": "（Jetty 会设置它，除非其 ServerConnector 有 acceptedTcpNoDelay = false：前面有代理吗？）",
    "sets_kestrel": "（Kestrel 会设置它，除非其选项有 NoDelay = false：前面有代理吗？）",
    "sets_gunicorn": "（gunicorn 自己会设置它：前面有代理吗？）",
    "sets_uvicorn": "（uvicorn 自己会设置它：前面有代理吗？）",
    "sets_hypercorn": "（Hypercorn 自己会设置它：前面有代理吗？）",
    "sets_lighttpd": "（lighttpd 自己会设置它：前面有代理吗？）",
    "sets_caddy": "（Caddy 自己会设置它：前面有代理吗？）",
    "knobs_server_http": (
        "（Java 的 HttpServer：-Dsun.net.httpserver.nodelay=true；Node：createServer({{noDelay: true}})；HAProxy：option "
        "http-no-delay；Go 自己会设置）"
    ),
    "knobs_server_mqtt": "（mosquitto：set_tcp_nodelay true）",
    "knobs_client_http": (
        "（PHP 的流：上下文的 socket 选项中 'tcp_nodelay' => true；Perl 的 IO::Socket：setsockopt(IPPROTO_TCP, TCP_NODELAY, "
        "1)；Python 的 http.client、Node 和 Go 自己会设置）"
    ),
    "knobs_client_memcached": "（pymemcache：no_delay=True；libmemcached：MEMCACHED_BEHAVIOR_TCP_NODELAY）",
    "knobs_client_mqtt": "（libmosquitto：MOSQ_OPT_TCP_NODELAY）",
    "knobs_client_redis": "（redis-py 和 hiredis 自己会设置：是自己写的客户端吗？）",
    # fixes, meanings and grounds of causes; in English they come from the core
    "meaning_network": "路径的往返时间，至多到其最小值",
    "meaning_queueing": "往返时间超出路径最小值的部分，而且包显示这是路径的",
    "meaning_bandwidth": "字节以线路或 pacing 容许的速度发出",
    "meaning_server_think": "服务器程序还没有产生下一个字节，没有别的东西拖住它",
    "meaning_client_think": "客户端程序还没有产生下一个字节，没有别的东西拖住它",
    "meaning_nagle": "小报文段被压住，因为前面的小报文段尚未确认",
    "meaning_delayed_ack": "接收方延迟了发送方需要的 ACK",
    "meaning_cork": "尾部被 TCP_CORK 或 MSG_MORE 压住，直到其定时器或 ACK",
    "meaning_cwnd": "在 ACK 到来之前，发送方的拥塞窗口不再放行",
    "meaning_receive_window": "接收方窗口放不下下一个报文段",
    "meaning_zero_window": "接收方通告零窗口：其程序不读",
    "meaning_fast_retransmit": "丢失的报文段，靠重复或选择确认修复",
    "meaning_tlp": "丢失的尾部，靠尾部丢失探测修复",
    "meaning_rto": "丢失的报文段，只靠重传定时器修复",
    "meaning_syn_rto": "丢失的 SYN 或 SYN, ACK，靠其 1 s 以上的定时器修复",
    "meaning_reordering": "报文段在路径上被超越，要等它们到来",
    "meaning_capture_gap": "抓包缺少这里线路上有过的包",
    "meaning_unknown": "此抓包无法说明",
    "meaning_pacing": "发送方内核把发送摊开（SO_MAX_PACING_RATE、fq、BBR）",
    "meaning_busy_host": "主机没有时间处理其包",
    "meaning_other_path": "字节经另一条连接传送",
    "meaning_not_asked": "无人等待：推送、有意等待的轮询、人在操作",
    "meaning_earlier_requests": "程序正在处理此连接上之前的请求",
    "meaning_second_copy": "抓包中已有的包的副本",
    "fix_of_queueing": "缩短瓶颈处的队列：在那里用 fq_codel 或 CAKE，或在发送方用 pacing（fq、BBR）。",
    "fix_of_bandwidth": "少发字节（压缩、缓存），或用更快的线路。",
    "fix_of_server_think": "对该请求剖析服务器；这段时间是其程序的，不是 TCP 的。",
    "fix_of_client_think": "剖析客户端；服务器和 TCP 都在等它。",
    "fix_of_nagle": "在发送的套接字上设 TCP_NODELAY，或把头和正文用一次写交给内核（writev）。",
    "fix_of_delayed_ack": "让发送方不必等它（在那里设 TCP_NODELAY），或每次读之后设 TCP_QUICKACK。",
    "fix_of_cork": "最后一次写之后清除 TCP_CORK，且不在其上设 MSG_MORE。",
    "fix_of_cwnd": "保持连接打开且“热”（tcp_slow_start_after_idle=0），或提高该路由的 initcwnd。",
    "fix_of_receive_window": "提高接收方的缓冲（tcp_rmem，不用小的 SO_RCVBUF），并让其程序更早读。",
    "fix_of_zero_window": "让接收的程序更早读；更大的缓冲只是推迟那一刻。",
    "fix_of_fast_retransmit": "查清路径在哪里丢包（队列、限速器、网线）；修复本身正常。",
    "fix_of_tlp": "查清路径在哪里丢包；丢尾部要多花两个往返，单独一个报文段多 200 ms。",
    "fix_of_rto": "查清路径在哪里丢包；打开 SACK 和尾部丢失探测后，需要定时器的丢失更少。",
    "fix_of_syn_rto": "查看 accept 队列是否满（backlog、somaxconn）或防火墙丢弃 SYN；重用连接。",
    "fix_of_reordering": "查清同一条流在哪里被分到多条链路（逐包均衡）；在那里按流散列。",
    "fix_of_capture_gap": "用更大的缓冲（tcpdump -B）、更短的截断长度（-s）或更窄的过滤器重新抓包。",
    "because_path_bounded": "按此连接自己的往返，路径至多占其一半",
    "because_kernel_answered": "其内核此前已确认过这些字节",
    "because_best_round_trip": "没有更早回来的应答",
    "because_nothing_open": "没有小段未确认，没有窗口已满，没有丢失",
    "because_left_before_ack": "它在 ACK 能到达其发送方之前就已发出",
    "because_goes_without_ack": "此发送方的小报文段越过未确认的发出：没有 Nagle 算法",
    "because_keeps_its_length": "间隔长度不变，而其中的 ACK 在移动",
    "because_control_shorter": "像内核那样随 ACK 发出，而没有压住 ACK 时程序用时更短",
    "because_follows_acks": "八次以上这样的等待随其 ACK 结束，不论何时；每次多长没有对照可说",
    "because_did_not_fit": "在那个包之前它超出窗口边缘，之后则在内",
    "because_called_for": "选择或重复确认要求重发",
    "because_timer_ran_out": "重发之前一个定时器的时间内没有别的到来",
    "because_receiver_says_twice": "接收方两次收到这些字节，或已有它们（DSACK、回显较旧的时间戳、没有新内容的 ACK）",
    "because_sent_again": "握手的包在抓包中出现两次，相隔一个定时器",
    "because_frames_missing": "对端确认了抓包所缺的",
    "because_no_round_trip": "没有见到与此端点的往返",
    "because_no_kernel_answer": "没有内核确认这些字节：这次路径可能花得更久",
    "because_path_may_be_more": "其一半以上可能是路径的或 pacing 的",
    "because_line_may_be_busy": "未确认的满长报文段、路径延迟或 pacing 都可解释此间隔",
    "because_sender_not_known": "此发送方的其他报文段看不出 Nagle 算法是否起作用",
    "because_control_explains": "没有压住 ACK 时程序用时一样久",
    "because_control_unclear": "没有压住 ACK 时程序用时时多时少：它可能在工作",
    "because_within_control": "没有被压住时程序也会用这么久：何时写出没有看到",
    "because_not_as_kernel": "内核发送被 ACK 释放的数据会更快",
    "because_ack_not_seen": "抓包缺少该 ACK",
    "because_few_waits": "此发送方以被压住 ACK 结束的等待少于八次",
    "because_late_after_ack": "它在 ACK 之后发出得比路径所能解释的更晚",
    "because_round_trip_by_program": "早于其程序的任何应答，但内核可能更早",
    "because_own_round_trip": "那里见到的唯一往返就是这个应答自己的",
    "because_option_may_change": "此发送方两种都有：选项可能在途中改变",
    "because_kernel_was_late": "内核自己的应答用时超过路径的最好值",
    "because_stamp_is_older": "时间戳比路径最好值所能解释的更旧",
    "because_full_segments": "满长报文段紧接着满长报文段",
    "because_even_pace": "报文段间隔均匀",
    "because_sooner_than_ack": "它在该 ACK 到达其发送方之前已在路上",
    "because_round_trip_grew": "被确认报文段的往返长于路径的",
    "because_with_the_ack": "它随 ACK 发出，恰在路径自己的往返之后",
    "because_window_of_one": "一次超时使窗口只剩一个报文段",
    "because_full_before": "未确认的是满长的：Linux 不在其后压住什么",
    "because_timer_on_tick": "所有等待都有定时器的长度并结束于同一节拍，睡眠的程序也可能如此",
    "because_timer_length": "等待恰如该定时器那么长",
    "because_not_pushed": "短且没有 PSH：程序说过还有更多",
    "because_copy_may_be_lost": "像重发一样晚，没有什么显示第一份没有在到此途中丢失",
    "because_nobody_tells": "没有时间戳和选择确认，接收方无法说第一份是否到达",
    "because_no_first_copy": "第一份不在抓包中",
    "because_by_ip_id": "只有发送方的 IP 标识显示丢失",
    "because_filled_late": "空洞补上得像定时器发送那样晚",
    "because_older_packet": "补上空洞的包更旧，或对重发来说来得太早",
    "because_not_taken": "第一份已到达其主机",
    "because_one_direction": "另一方向不在抓包中",
    "because_twice_in_capture": "该连接的包在抓包中出现两次",
    "because_on_other_paths": "其消息的部分可能经其他连接传送（多路径）",
    "because_only_turns": "所说的无法读出（加密，或没有读取器认识）：到来的未必是应答",
    "because_waits_for_event": "应答或其下一部分按请求的要求等待事件",
    "because_behind_answers": "按协议要求，此连接上之前请求的应答先到",
    "because_fills_window": "它恰好填满窗口，窗口已放不下满长报文段",
    "because_fills_segment": "满长报文段在未确认的小段之后：其一部分可能更早写出并等待过",
    "because_answered_for": "没有 SYN/ACK 和应答像其 ACK 那样快地到来：路径上另一台主机发送 ACK",
    "because_few_inside": "那台服务器少于八个请求落在这样的请求之内",
    "because_several_around": "有不止一个请求同样紧密地包住它",
    "because_not_remembered": "证据多于能记住的",
    # joined captures
    "comma": "，",
    "join_title": "{a} + {b}：{all} 个包中 {both} 个两点都有，{n} 次交互",
    "join_title_proxy": "{a} + {b}：中间是代理（没有相同的包，请求相同），{n} 次交互",
    "join_title_one": "{a}：代理的两侧，{n} 次交互及其背后的请求",
    "join_title_points": "{names}：全部 {points} 点都有的 {n} 次交互",
    "join_held": "应答在等客户端一侧压住的确认，客户端自己的抓包可见。",
    "join_lost": "包在两点之间丢失，请求要等到重发。",
    "join_between": "大部分时间花在两点之间。",
    "join_between_proxy": "大部分时间花在两点之间：路上和代理中。",
    "join_between_one": "大部分时间花在代理中，或它与被抓包的主机之间。",
    "join_between_points": "大部分时间花在 {a} 和 {b} 之间。",
    "join_beyond": "大部分时间花在 {a} 之后。",
    "join_server": "大部分时间花在服务器一侧：{cause}。",
    "join_client": "大部分时间花在客户端一侧：{cause}。",
    "join_unknown": "大部分时间原因不明。",
    "join_none": "没有一次交互在两个抓包中都完整。",
    "join_typical": "{latency_ms}（中位数的请求）中：{places}",
    "join_all": "{places}；共 {all_ms}",
    "join_held_part": "{part_ms:n} 被客户端压住（在客户端已证实）",
    "join_client_part": "{part_ms:n} 在客户端一侧",
    "join_way_part": "{part_ms:n} 在路上",
    "join_way_part_within": "{part_ms:n} \N{PLUS-MINUS SIGN} {bound_ms:n} 在路上",
    "join_proxy_part": "{part_ms:n} 在代理中",
    "join_between_points_part": "{part_ms:n} 在 {a} 和 {b} 之间",
    "join_beyond_part": "{part_ms:n} 在 {a} 之后",
    "join_lost_part": "{part_ms:n} 等丢失的包重发",
    "join_program_part": "{part_ms:n} 在服务器的程序中",
    "join_server_part": "{part_ms:n} 在服务器一侧的别处",
    "join_unknown_part": "{part_ms:n} 原因不明",
    "join_split": "从 A 到 B {out_ms}，到应答离开 B {far_ms:n}，从 B 到 A {back_ms:n}",
    "join_split_one": "到代理发出请求 {out_ms}，到它得到应答 {far_ms:n}，到它转发完毕 {back_ms:n}",
    "join_split_within": "；去和回各 \N{PLUS-MINUS SIGN} {bound_ms:n}，其和是准确的",
    "join_one_clock": "一个抓包，一个时钟：每一部分都是准确的",
    "join_ahead": "快 {size}",
    "join_behind": "慢 {size}",
    "join_clock": "B 的时钟比 A 的{offset}，误差在 {bound_ms} 之内（最小往返 {gap_ms}）",
    "join_clock_one_way": "B 的时钟看来比 A 的{offset}；单方向的包看不出其中多少是路上的",
    "join_rate_unknown": "；{seconds} s 太短，看不出其速率",
    "join_rate_same": "，速率相同",
    "join_rate_faster": "，走得快 {ppm} ppm",
    "join_rate_slower": "，走得慢 {ppm} ppm",
    "join_steps": "；它被拨动了 {steps}",
    "join_proven": "proven：{proofs}",
    "join_held_proof": "{of} 次交互中有 {held} 次，客户端的抓包有数据到达和 ACK 发出的时刻",
    "join_lost_proof": "{n} 次等待是为一点已发出、另一点从未收到的包",
    "join_asymmetry": "路上去和回各占多少：此估计把两个方向的最小延迟视为相同",
    "join_losses": "丢失：{losses}",
    "join_and": "，",
    "join_lost_a_to_b": "从 A 到 B 的 {sent} 个包中 {n} 个（{share}）",
    "join_lost_b_to_a": "从 B 到 A 的 {sent} 个包中 {n} 个（{share}）",
    "join_no_loss": "无丢失",
    "join_lacks": "{capture} 的抓包缺少 {n} 个已通过的包",
    "join_fate_doubled": "{n} 个到了两次",
    "join_fate_made": "{n} 个产生于两点之间（由中间设备应答）",
    "join_fate_unknown": "{n} 个不知是否丢失：其接收方的抓包也缺少别的包",
    "way_no_router": "无路由器",
    "way_routers": "{some} 台路由器",
    "way_or": " 或 ",
    "way_nothing": "没有改写",
    "way_none": "无",
    "way_client": "客户端 {old} 变为 {new}{n:| 等}",
    "way_client_port": "客户端端口 {old} 变为 {new}{n:| 等}",
    "way_server": "服务器 {old} 变为 {new}{n:| 等}",
    "way_server_port": "服务器端口 {old} 变为 {new}{n:| 等}",
    "way_mss": "MSS {old} 变为 {new}",
    "way_scale": "窗口缩放 {old} 变为 {new}",
    "way_no_stamps": "时间戳选项被去掉",
    "way_no_sack": "SACK 选项被去掉",
    "way_numbers": "序列号被改写",
    "way_identification": "IP 标识被改写",
    "way_stamps": "时间戳被改写",
    "way_offload": "报文段被合并或切开（offload）",
    # report pages
    "page_answer": "答案",
    "page_actions": "用户在等什么",
    "page_servers": "服务器",
    "page_findings": "发现",
    "page_rates": "速率",
    "page_timeline": "何时慢",
    "page_waterfall": "最长的交互的时间花在哪里",
    "page_exchanges": "交互",
    "page_flow": "最差的交互，逐包",
    "page_changed": "有何变化",
    "page_latency": "延迟",
    "page_causes": "原因，每次交互平均 ms",
    "page_before": "之前：{title}",
    "page_after": "之后：{title}",
    "page_before_waterfall": "之前：最长的交互的时间花在哪里",
    "page_after_waterfall": "之后：最长的交互的时间花在哪里",
    "page_moved": "是",
    "page_noise": "不超过噪声",
    "page_unknown": "未知",
    "page_actions_all": "全部 {of} 个动作：一个客户端为得到一样东西所做的事，以及各部分花了多久。",
    "page_actions_some": "{of} 个动作中最长的 {n} 个：一个客户端为得到一样东西所做的事，以及各部分花了多久。",
    "page_more_servers": "还有 {n} 台花时间更少的服务器",
    "page_more_findings": "还有 {n} 个发现",
    "page_dots": "{first} 到 {last} UTC；一个点是一个请求，在其开始时刻。",
    "page_dots_merged": "{first} 到 {last} UTC；一个点是一个请求，在其开始时刻。落在同一处的点合为一个。",
    "page_bars_one": "一次交互；白色虚线：未证实。",
    "page_bars_all": "全部 {of} 次；白色虚线：未证实。",
    "page_bars_some": "{of} 次中最长的 {n} 次；白色虚线：未证实。",
    "page_requests_all": "全部 {of} 个请求。",
    "page_requests_some": "{of} 个请求中最慢的 {n} 个。",
    "page_unfinished": "{n} 个没有延迟：抓包中不完整。",
    "page_find": "查找：行中的词",
    "page_graph": "交互 {exchange}：{about}",
    "page_graph_evidence": "结论的证据。{caption}",
    "page_graph_of": "交互 {exchange}：{about}，主要原因 {cause}",
    "page_piece": "{cause}：{took_ms}",
    "page_piece_unproven": "{cause}：{took_ms}，未证实",
    "page_dashes": "白色虚线",
    "page_dashes_mean": "未证实",
    "page_no_cause": "无主要原因",
    "page_over_time": "延迟随时间",
    "column_name": "名称",
    "column_before": "之前",
    "column_after": "之后",
    "column_change": "变化",
    "column_low": "下界",
    "column_high": "上界",
    "column_moved": "有变化",
    "column_server": "服务器",
    "column_what": "内容",
    "column_ended": "结局",
    "column_total_ms": "总计 ms",
    "column_lookup_ms": "域名解析 ms",
    "column_connect_ms": "连接 ms",
    "column_tls_ms": "TLS ms",
    "column_greeting_ms": "问候 ms",
    "column_request_ms": "请求 ms",
    "column_other_ms": "其他 ms",
    "column_count": "数量",
    "column_left_out": "未计入",
    "column_mean_ms": "平均 ms",
    "column_p50_ms": "p50 ms",
    "column_p90_ms": "p90 ms",
    "column_p99_ms": "p99 ms",
    "column_max_ms": "最大 ms",
    "column_requests_per_s": "每秒请求",
    "column_cause": "原因",
    "column_owner": "归属",
    "column_grade": "把握",
    "column_exchanges": "交互",
    "column_of_p50_ms": "占 p50 ms",
    "column_of_p99_ms": "占 p99 ms",
    "column_fix": "该做什么或知道什么",
    "column_filter": "过滤器",
    "column_exchange": "交互",
    "column_latency_ms": "延迟 ms",
    "column_request": "请求",
    "column_top_cause": "主要原因",
    "column_status": "状态",
    "column_stream": "流",
    "column_started": "开始，UTC",
    # flow graphs
    "no_font": "没有已安装的字体含有中文字：图片用英文（Debian、Ubuntu：apt install fonts-noto-cjk）",
    "flow_time": "时间",
    "flow_comment": "备注",
    "flow_continued": "{text}（续）",
    "flow_cut": "{time}，截短",
    "flow_to_scale": "；按比例，但行高不低于 {time}",
    "flow_no_cause": "无原因",
    "flow_no_cause_mean": "causes 表中没有一行解释此间隔",
    "flow_not_tcp": "非 TCP",
    "flow_clients": "{address}（各客户端）",
    "flow_segments": "{n} 个报文段，{bytes} B",
    "flow_acks": "{n} 个 ACK",
    "flow_held": "被压住的 ACK",
    "flow_freed": "被释放",
    "flow_part": "{whole} ms 中的 {part} ms",
    "flow_wait": "{time} {cause}",
    "flow_wait_probable": "{time} {cause}，probable",
    "flow_wait_suspected": "{time} {cause}，suspected",
    "flow_wait_unknown": "{time} {cause}，unknown",
    "flow_waits": "{side}在等：{cause}",
    "flow_and_more": "{first} 等另 {n} 个",
    "flow_exchange": "交互 {exchange}：{about}",
    "flow_of_connect": "建立连接",
    "flow_of_pause": "客户端的停顿",
    "flow_of_push": "主动发送",
    "flow_of_held": "被客户端内核压住",
    "flow_of_one_way": "怀疑有停顿",
    "flow_of_other": "请求之外",
    "flow_cut_by": "不完整（{by}）",
    "flow_counts": "{nodes} 个节点，{n} 项",
    "flow_counts_of": "{nodes} 个节点，{of} 项中的 {n} 项",
    "flow_counts_marked": "{nodes} 个节点，{of} 项中的 {n} 项；标出至少 {time} 的等待",
    "flow_page": "第 {page} 页，共 {of} 页；{status}",
    "flow_longest": " 最长的等待为 {cause} 的 {time}，在帧 {low}-{high}。",
    "flow_no_page": "{of} 行中 {n} 行不在任何页上：接下来是帧 {low}-{high}。",
    "flow_rest": "{of} 行中 {n} 行没有显示：接下来是帧 {low}-{high}；要全部，每页 {of} 行，或分页。",
    "flow_behind": "后面还有 {n} 个报文：请选择帧、流或过滤器。",
    "flow_before": "{of} 行中 {n} 行没有显示：要全部，每页 {of} 行，或分页。",
    "flow_equal_heights": "相同的高度是各侧第一行以来相同的时间",
    "flow_zero_window_probe": "零窗口探测",
    "flow_zero_window": "零窗口",
    "flow_window_full": "窗口已满",
    "flow_fast_retransmission": "快速重传",
    "flow_spurious_retransmission": "多余的重传",
    "flow_retransmission": "重传",
    "flow_out_of_order": "乱序",
    "flow_lost_segment": "之前有空洞",
    "flow_ack_lost_segment": "确认了未见的数据",
    "flow_duplicate_ack": "重复 ACK",
    "flow_keep_alive": "保活",
    "flow_reused_ports": "端口重用",
    "flow_worst": "最差的交互",
    "flow_typical": "典型的交互",
    "flow_first": "第一次交互",
    "flow_icmp": "ICMP 流",
    "flow_all": "所有流",
    "point_title": "两点之间通过了什么",
    "point_exchange": "交互 {exchange}",
    "point_thirds": "{latency_ms}：从 A 到 B {out_ms:n}，B 之后 {far_ms:n}，从 B 到 A {back_ms:n}",
    "point_within": "；去和回各 \N{PLUS-MINUS SIGN} {bound_ms:n}",
    "point_first": "{of} 个包中的前 {n} 个。",
    "point_frame": "{time}  帧 {frame}",
    "point_number": "{time}  #{frame}",
    "point_leg": "{way} {way_ms:n}",
    "point_legs": "{latency_ms}：来回 {ways}，{name} 之后 {far_ms:n}",
    "point_lost": "从未到达",
    "point_doubled": "第二份",
    "point_made": "产生于两点之间",
    "point_unseen": "已通过，而那个抓包缺少它",
    "point_outside": "那个抓包当时没有运行",
    "point_unknown": "丢失或未见",
    "point_at_client": "客户端",
    "point_at_server": "服务器",
    "point_at_between": "路上",
    "point_at_unknown": "?",
    "flow_frames": "帧 {first} \N{RIGHTWARDS ARROW} {last}",
    # systems by delayed-ACK timer (ms)
    "timer_user_40": "Linux，或 2020 年起的 FreeBSD",
    "timer_user_50": "Solaris，或 Windows",
    "timer_template": "{system} (其长路径模板)",
    "timer_user_100": "macOS，或 2020 年前的 FreeBSD",
    "timer_user_200": "Windows",
    "timer_user_250": "lwIP",
    # transactions
    "client_in_transaction": (
        "客户端 {client} 在一个 {took_ms} 的事务中，自己在语句之间用了 {span_ms}（帧 {frame} 到 {commit_frame}）："
        "{server} 已应答每个语句，持着锁等下一个{n:|；共 {n} 个事务如此}"
    ),
    "client_in_transaction.fix": (
        "让 {client} 的程序在事务之外做自己的工作、等人操作：数据库只是在等它，别人在等它的锁"
        "（idle_in_transaction_session_timeout 可结束这样的会话）。"
    ),
}
